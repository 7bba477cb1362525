#include "kcp/top_k.h"

#include <stdlib.h>
#include <string.h>

#include "kcp/top_k_carry.h"

enum kcp_status kcp_top_k_carry_create(uint64_t k, struct kcp_top_k_carry *carry,
                                       struct kcp_error *error) {
  memset(carry, 0, sizeof *carry);
  carry->k = k;
  carry->items = calloc(k > 0 ? k : 1, sizeof *carry->items);
  carry->spare = calloc(k > 0 ? k : 1, sizeof *carry->spare);
  if (carry->items != NULL && carry->spare != NULL) return KCP_OK;
  kcp_top_k_carry_free(carry);
  return kcp_out_of_memory(error, "the first k values", 2 * k * sizeof *carry->items);
}

void kcp_top_k_carry_free(struct kcp_top_k_carry *carry) {
  free(carry->items);
  free(carry->spare);
  memset(carry, 0, sizeof *carry);
}

void kcp_top_k_carry_reset(struct kcp_top_k_carry *carry) {
  carry->count = carry->equal = carry->nan_count = 0;
}

static uint64_t count_key(const struct kcp_ranked_key *items, uint64_t count, uint64_t key) {
  uint64_t equal = 0;
  for (uint64_t i = 0; i < count; ++i) equal += items[i].key == key;
  return equal;
}

/* Values of the part with a key that is not behind its limit. */
static uint64_t count_in_part(const struct kcp_top_k_part *part, uint64_t key) {
  if (part->limited && key == part->limit_key) return part->limit_equal;
  if (part->count > 0 && key == part->items[part->count - 1].key) return part->equal;
  return count_key(part->items, part->count, key);
}

/* Values carried so far with a key that is not behind the last one's. */
static uint64_t count_in_carry(const struct kcp_top_k_carry *carry, uint64_t key) {
  if (carry->count > 0 && key == carry->items[carry->count - 1].key) return carry->equal;
  return count_key(carry->items, carry->count, key);
}

void kcp_top_k_carry_add(struct kcp_top_k_carry *carry, const struct kcp_top_k_part *part) {
  uint64_t from_carry = 0, from_part = 0, count = 0;
  carry->nan_count += part->nan_count;
  while (count < carry->k && (from_carry < carry->count || from_part < part->count)) {
    bool earlier =
        from_part == part->count ||
        (from_carry < carry->count && carry->items[from_carry].key <= part->items[from_part].key);
    carry->spare[count++] = earlier ? carry->items[from_carry++] : part->items[from_part++];
  }
  if (count == 0) return;
  uint64_t last = carry->spare[count - 1].key;
  carry->equal = count_in_carry(carry, last) + count_in_part(part, last);
  struct kcp_ranked_key *merged = carry->spare;
  carry->spare = carry->items;
  carry->items = merged;
  carry->count = count;
}

enum kcp_status kcp_top_k_answer_allocate(const struct kcp_top_k_plan *plan,
                                          struct kcp_top_k_answer *answer,
                                          struct kcp_error *error) {
  memset(answer, 0, sizeof *answer);
  answer->rows = plan->rows;
  answer->width = plan->k < plan->columns ? plan->k : plan->columns;
  uint64_t room = answer->rows * answer->width; /* <= rows * columns */
  answer->values = calloc(room > 0 ? room : 1, sizeof *answer->values);
  answer->certificates = calloc(plan->rows > 0 ? plan->rows : 1, sizeof *answer->certificates);
  if (answer->values != NULL && answer->certificates != NULL) return KCP_OK;
  kcp_top_k_answer_free(answer);
  return kcp_out_of_memory(error, "the answer", room * sizeof *answer->values);
}

void kcp_top_k_answer_free(struct kcp_top_k_answer *answer) {
  free(answer->values);
  free(answer->certificates);
  memset(answer, 0, sizeof *answer);
}

void kcp_top_k_answer_set_row(const struct kcp_top_k_plan *plan, uint64_t row,
                              const struct kcp_ranked_key *items, uint64_t count, uint64_t equal,
                              uint64_t nan_count, struct kcp_top_k_answer *answer) {
  struct kcp_top_value *values = answer->values + row * answer->width;
  struct kcp_top_k_certificate *certificate = &answer->certificates[row];
  for (uint64_t i = 0; i < count; ++i) {
    values[i].index = items[i].index;
    values[i].value.bits = kcp_ordered_value(plan->type, plan->order, items[i].key);
  }
  certificate->count = count;
  certificate->nan_count = nan_count;
  if (count == 0) return;
  certificate->last = values[count - 1].value;
  certificate->equal = equal;
  certificate->above = 0;
  while (items[certificate->above].key != items[count - 1].key) ++certificate->above;
}
