#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/top_k_query.h"

#define BLOCK_VALUES 262144

/* The order of values, written once more on purpose. */

static bool is_nan(enum kcp_value_type type, union kcp_value value) {
  return (type == KCP_VALUE_F32 && isnan(value.f32)) || (type == KCP_VALUE_F64 && isnan(value.f64));
}

static bool is_less(enum kcp_value_type type, union kcp_value a, union kcp_value b) {
  switch (type) {
    case KCP_VALUE_F32: return a.f32 < b.f32;
    case KCP_VALUE_F64: return a.f64 < b.f64;
    case KCP_VALUE_I32: return a.i32 < b.i32;
    case KCP_VALUE_U32: return a.u32 < b.u32;
    default: return a.i64 < b.i64;
  }
}

static bool precedes(const struct kcp_top_k_plan *plan, union kcp_value a, union kcp_value b) {
  return plan->order == KCP_LARGEST_FIRST ? is_less(plan->type, b, a) : is_less(plan->type, a, b);
}

static bool is_equal(enum kcp_value_type type, union kcp_value a, union kcp_value b) {
  return !is_less(type, a, b) && !is_less(type, b, a);
}

/* A row under check. */
struct check {
  const struct kcp_top_k_plan *plan;
  uint64_t row;
  const struct kcp_top_k_certificate *certificate;
  const struct kcp_top_value *values;
  struct kcp_top_value *by_index; /* the same, in the order of their indices */
  uint64_t matched;               /* of these, seen in the row */
  uint64_t above, equal, nan_count;
  uint64_t equal_chosen;  /* values of the answer that equal the last */
  uint64_t equal_earlier; /* equal values of the row with indices up to the last one's */
};

static enum kcp_status wrong(const struct check *check, const char *what, uint64_t found,
                             uint64_t claimed, struct kcp_error *error) {
  return kcp_fail(error, KCP_WRONG_ANSWER,
                  "wrong answer: row %" PRIu64 ": %s: %" PRIu64 ", the answer says %" PRIu64,
                  check->row, what, found, claimed);
}

static int compare_indices(const void *a, const void *b) {
  uint64_t left = ((const struct kcp_top_value *)a)->index;
  uint64_t right = ((const struct kcp_top_value *)b)->index;
  return left < right ? -1 : left > right;
}

static enum kcp_status check_order(struct check *check, struct kcp_error *error) {
  const struct kcp_top_k_plan *plan = check->plan;
  uint64_t count = check->certificate->count;
  for (uint64_t i = 1; i < count; ++i) {
    const struct kcp_top_value *a = &check->values[i - 1], *b = &check->values[i];
    bool ordered = precedes(plan, a->value, b->value) ||
                   (is_equal(plan->type, a->value, b->value) && a->index < b->index);
    if (!ordered) return wrong(check, "place out of order", i, i, error);
  }
  memcpy(check->by_index, check->values, count * sizeof *check->by_index);
  qsort(check->by_index, count, sizeof *check->by_index, compare_indices);
  for (uint64_t i = 0; i < count; ++i)
    check->equal_chosen += is_equal(plan->type, check->values[i].value, check->certificate->last);
  return KCP_OK;
}

/* The place of the first of the answer's values with this index or a later one. */
static uint64_t first_from(const struct check *check, uint64_t index) {
  uint64_t low = 0, high = check->certificate->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (check->by_index[middle].index < index)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* `next` is the place of the answer's next value in the order of their indices. */
static void look_at_value(struct check *check, uint64_t *next, union kcp_value value,
                          uint64_t index) {
  const struct kcp_top_k_plan *plan = check->plan;
  uint64_t count = check->certificate->count;
  if (*next < count && check->by_index[*next].index == index) {
    check->matched +=
        !is_nan(plan->type, value) && is_equal(plan->type, check->by_index[*next].value, value);
    ++*next;
  }
  if (is_nan(plan->type, value)) {
    ++check->nan_count;
  } else if (count == 0 || precedes(plan, value, check->certificate->last)) {
    ++check->above;
  } else if (is_equal(plan->type, value, check->certificate->last)) {
    ++check->equal;
    check->equal_earlier += index <= check->values[count - 1].index;
  }
}

/* Looks at values first .. first + count - 1 of the row and adds what it counts to the check. */
static enum kcp_status check_block(struct check *check, const struct kcp_value_source *source,
                                   uint64_t first, uint64_t count, struct kcp_error *error) {
  const struct kcp_top_k_plan *plan = check->plan;
  const size_t size = plan->type == KCP_VALUE_F64 || plan->type == KCP_VALUE_I64 ? 8 : 4;
  unsigned char *block = malloc(count * size);
  if (block == NULL) return kcp_out_of_memory(error, "verifying", count * size);
  enum kcp_status status =
      source->read(source->context, check->row * plan->columns + first, count, block, error);
  uint64_t next = first_from(check, first);
  for (uint64_t i = 0; i < count && status == KCP_OK; ++i) {
    union kcp_value value = {.bits = 0};
    memcpy(&value, block + i * size, size);
    look_at_value(check, &next, value, first + i);
  }
  free(block);
  if (status == KCP_OK && kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
  return status;
}

static enum kcp_status check_values(struct check *check, const struct kcp_value_source *source,
                                    struct kcp_error *error) {
  const uint64_t columns = check->plan->columns;
  const struct check nothing_counted = *check;
  enum kcp_status status = KCP_OK;
#pragma omp parallel for schedule(dynamic) if (columns > BLOCK_VALUES)
  for (uint64_t first = 0; first < columns; first += BLOCK_VALUES) {
    struct check mine = nothing_counted;
    struct kcp_error reason;
    enum kcp_status known;
#pragma omp atomic read
    known = status;
    if (known != KCP_OK) continue;
    uint64_t left = columns - first;
    known = check_block(&mine, source, first, left < BLOCK_VALUES ? left : BLOCK_VALUES, &reason);
#pragma omp critical(kcp_check_values)
    {
      check->matched += mine.matched;
      check->above += mine.above;
      check->equal += mine.equal;
      check->nan_count += mine.nan_count;
      check->equal_earlier += mine.equal_earlier;
      if (known != KCP_OK && status == KCP_OK) {
        status = known;
        if (error != NULL) *error = reason;
      }
    }
  }
  return status;
}

static enum kcp_status check_counts(const struct check *check, struct kcp_error *error) {
  const struct kcp_top_k_certificate *claimed = check->certificate;
  const struct kcp_top_k_plan *plan = check->plan;
  uint64_t valid = plan->columns - check->nan_count;
  uint64_t due = plan->k < valid ? plan->k : valid;
  if (claimed->count != due) return wrong(check, "values due", due, claimed->count, error);
  if (claimed->nan_count != check->nan_count)
    return wrong(check, "NaN", check->nan_count, claimed->nan_count, error);
  if (check->matched != claimed->count)
    return wrong(check, "values found at their index", check->matched, claimed->count, error);
  if (check->above != claimed->above)
    return wrong(check, "values above the k-th", check->above, claimed->above, error);
  if (check->equal != claimed->equal)
    return wrong(check, "values equal to the k-th", check->equal, claimed->equal, error);
  if (check->above + check->equal_chosen != claimed->count)
    return wrong(check, "values above the k-th in the answer", claimed->count - check->equal_chosen,
                 check->above, error);
  if (check->equal_earlier != check->equal_chosen)
    return wrong(check, "equal values up to the last index", check->equal_earlier,
                 check->equal_chosen, error);
  return KCP_OK;
}

enum kcp_status kcp_verify_top_k(const struct kcp_top_k_plan *plan,
                                 const struct kcp_value_source *source,
                                 const struct kcp_top_k_answer *answer, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct kcp_top_value *by_index = malloc((answer->width + 1) * sizeof *by_index);
  if (by_index == NULL)
    status = kcp_out_of_memory(error, "verifying", answer->width * sizeof *by_index);
  for (uint64_t row = 0; row < plan->rows && status == KCP_OK; ++row) {
    struct check check = {.plan = plan,
                          .row = row,
                          .certificate = &answer->certificates[row],
                          .values = answer->values + row * answer->width,
                          .by_index = by_index};
    if (check.certificate->count > answer->width)
      status = wrong(&check, "room", answer->width, check.certificate->count, error);
    if (status == KCP_OK) status = check_order(&check, error);
    if (status == KCP_OK) status = check_values(&check, source, error);
    if (status == KCP_OK) status = check_counts(&check, error);
  }
  free(by_index);
  return status;
}
