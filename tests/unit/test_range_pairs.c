/* The collector of a range join's pairs, and the writers behind it, against lists made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kcp/random.h"
#include "kcp/range_pairs.h"
#include "kcp/range_writer.h"

enum { REFERENCES = 900, QUERIES = 700, SLICES = 3, SLICE_RECORDS = 300, BLOCK = 250 };

/* How neighbours come about: query q has record v. */
enum pattern { RANDOM, ONE_HAS_ALL, NONE, ALL };

static bool is_neighbour(enum pattern pattern, uint64_t query, uint64_t record) {
  switch (pattern) {
    case RANDOM:
      return kcp_random_pair(7, 1, query * REFERENCES + record, 0).first % 11 < query % 5;
    case ONE_HAS_ALL: return query == 123;
    case NONE: return false;
    default: return true;
  }
}

/* Coordinates for ranks: a rank is the square of query - record. */
static struct kcp_points numbers(uint64_t first, uint64_t count) {
  struct kcp_points points;
  assert_int_equal(kcp_points_allocate(count, 1, &points, NULL), KCP_OK);
  points.count = count;
  for (uint64_t i = 0; i < count; ++i) points.coordinates[i] = (double)(first + i) / 8;
  return points;
}

static uint64_t place_in_order(uint64_t i, uint64_t count) {
  return (i * 389) % count; /* 389 is prime to the counts here */
}

/* Passes queries of a block in batches of changing length and in no order, some through a room. */
static void add_block(struct kcp_range_pairs *pairs, enum pattern pattern, uint64_t block_first,
                      uint64_t slice, const struct kcp_points *slice_points) {
  const uint64_t count = QUERIES - block_first < BLOCK ? QUERIES - block_first : BLOCK;
  struct kcp_points block_points = numbers(block_first, count);
#pragma omp parallel for schedule(dynamic, 1)
  for (uint64_t begin = 0; begin < count; begin += 17) {
    const uint64_t length = count - begin < 17 ? count - begin : 17;
    uint32_t queries[17], *lists = malloc(17 * SLICE_RECORDS * sizeof *lists), *room = NULL;
    uint64_t offsets[18] = {0};
    for (uint64_t i = 0; i < length; ++i) {
      queries[i] = (uint32_t)place_in_order(begin + i, count);
      offsets[i + 1] = offsets[i];
      for (uint32_t v = 0; v < SLICE_RECORDS; ++v)
        if (is_neighbour(pattern, block_first + queries[i], slice * SLICE_RECORDS + v))
          lists[offsets[i + 1]++] = v;
    }
    if (begin % 2 == 0) room = kcp_range_pairs_room(pairs, offsets[length]);
    if (room != NULL) memcpy(room, lists, offsets[length] * sizeof *lists);
    const struct kcp_range_batch batch = {length, queries, offsets, room != NULL ? room : lists};
    kcp_range_pairs_add(pairs, &batch, block_first, slice, slice_points, &block_points);
    free(lists);
  }
  kcp_points_free(&block_points);
}

static void add_all(struct kcp_range_pairs *pairs, enum pattern pattern) {
  for (uint64_t slice = 0; slice < SLICES; ++slice) {
    struct kcp_points slice_points = numbers(slice * SLICE_RECORDS, SLICE_RECORDS);
    for (uint64_t first = 0; first < QUERIES; first += BLOCK)
      add_block(pairs, pattern, first, slice, &slice_points);
    kcp_points_free(&slice_points);
  }
  kcp_range_pairs_end(pairs);
}

static uint64_t count_of(enum pattern pattern) {
  uint64_t count = 0;
  for (uint64_t q = 0; q < QUERIES; ++q)
    for (uint64_t v = 0; v < REFERENCES; ++v) count += is_neighbour(pattern, q, v);
  return count;
}

static void begin(struct kcp_range_pairs *pairs, bool wants_ranks, uint64_t budget, uint64_t most) {
  assert_int_equal(kcp_range_pairs_begin(0, QUERIES, SLICES, SLICE_RECORDS, wants_ranks, budget,
                                         most, pairs, NULL),
                   KCP_OK);
}

static void check_pairs(const struct kcp_range_pairs *pairs, enum pattern pattern) {
  assert_int_equal(pairs->count, count_of(pattern));
  for (uint64_t q = 0; q < QUERIES; ++q)
    for (uint64_t slice = 0; slice < SLICES; ++slice) {
      const struct kcp_range_piece *piece = &pairs->pieces[q * SLICES + slice];
      uint64_t at = piece->first;
      for (uint32_t v = 0; v < SLICE_RECORDS; ++v) {
        const uint64_t record = slice * SLICE_RECORDS + v;
        if (!is_neighbour(pattern, q, record)) continue;
        assert_in_range(at, piece->first, piece->first + piece->count - 1);
        assert_int_equal(pairs->neighbours[at], v);
        const double difference = ((double)record - (double)q) / 8;
        if (pairs->wants_ranks) assert_true(pairs->ranks[at] == difference * difference);
        ++at;
      }
      assert_int_equal(at, piece->first + piece->count);
    }
}

static void test_collects(void **state) {
  (void)state;
  for (int pattern = RANDOM; pattern <= ALL; ++pattern)
    for (int wants_ranks = 0; wants_ranks < 2; ++wants_ranks) {
      struct kcp_range_pairs pairs;
      begin(&pairs, wants_ranks, UINT64_MAX, UINT64_MAX);
      add_all(&pairs, (enum pattern)pattern);
      assert_false(pairs.overflowed);
      check_pairs(&pairs, (enum pattern)pattern);
      kcp_range_pairs_free(&pairs);
    }
}

/* Room for just enough, by budget and by count, and for one less. */
static void test_budget(void **state) {
  const uint64_t count = count_of(RANDOM);
  struct kcp_range_pairs pairs;
  (void)state;
  begin(&pairs, false, count * kcp_range_pair_bytes(false), UINT64_MAX);
  add_all(&pairs, RANDOM);
  assert_false(pairs.overflowed);
  check_pairs(&pairs, RANDOM);
  kcp_range_pairs_free(&pairs);
  begin(&pairs, true, UINT64_MAX, count);
  add_all(&pairs, RANDOM);
  assert_false(pairs.overflowed);
  check_pairs(&pairs, RANDOM);
  kcp_range_pairs_free(&pairs);
  const uint64_t short_of[] = {0, kcp_range_pair_bytes(false) * (count - 1)};
  for (int i = 0; i < 2; ++i) {
    begin(&pairs, false, short_of[i], UINT64_MAX);
    add_all(&pairs, RANDOM);
    assert_true(pairs.overflowed);
    assert_null(pairs.neighbours);
    kcp_range_pairs_free(&pairs);
  }
  begin(&pairs, false, 0, UINT64_MAX); /* nothing needs no room */
  add_all(&pairs, NONE);
  assert_false(pairs.overflowed);
  kcp_range_pairs_free(&pairs);
}

/* ---- files ---- */

static const char *const csv_path = "test_range_pairs.csv";
static const char *const npy_path = "test_range_pairs.npy";
static const char *const offsets_path = "test_range_pairs.offsets.npy";

static uint64_t id_of(uint64_t record) {
  return record % 3 == 0 ? UINT64_MAX - record : record * 1000003;
}

static struct kcp_range_runner runner_of(uint64_t *reference_ids, uint64_t *query_ids) {
  for (uint64_t i = 0; i < REFERENCES; ++i) reference_ids[i] = id_of(i);
  for (uint64_t i = 0; i < QUERIES; ++i) query_ids[i] = id_of(i + 5);
  return (struct kcp_range_runner){.reference_ids = reference_ids, .query_ids = query_ids};
}

/* Lines by fprintf, query after query. */
static void check_csv(bool self) {
  FILE *file = fopen(csv_path, "r");
  char line[128], expected[128];
  assert_non_null(file);
  for (uint64_t q = 0; q < QUERIES; ++q)
    for (uint64_t v = 0; v < REFERENCES; ++v) {
      if (!is_neighbour(RANDOM, q, v)) continue;
      const uint64_t id = id_of(v), query_id = id_of(q + 5);
      snprintf(expected, sizeof expected, "%" PRIu64 ",%" PRIu64 ",%.17g\n", self ? query_id : id,
               self ? id : query_id, fabs((double)v - (double)q) / 8);
      assert_non_null(fgets(line, sizeof line, file));
      assert_string_equal(line, expected);
    }
  assert_null(fgets(line, sizeof line, file));
  fclose(file);
}

static void test_lines(void **state) {
  uint64_t reference_ids[REFERENCES], query_ids[QUERIES];
  struct kcp_range_runner runner = runner_of(reference_ids, query_ids);
  struct kcp_range_pairs pairs;
  (void)state;
  begin(&pairs, true, UINT64_MAX, UINT64_MAX);
  add_all(&pairs, RANDOM);
  assert_true(pairs.count > 3 * 16384); /* several blocks */
  for (int self = 0; self < 2; ++self) {
    struct kcp_range_writer writer;
    assert_int_equal(kcp_range_writer_open(csv_path, &writer, NULL), KCP_OK);
    assert_true(kcp_range_writer_wants_ranks(&writer));
    writer.self = self;
    assert_int_equal(kcp_range_writer_add(&writer, &runner, &pairs, NULL), KCP_OK);
    assert_int_equal(kcp_range_writer_commit(&writer, NULL), KCP_OK);
    kcp_range_writer_discard(&writer);
    check_csv(self);
  }
  remove(csv_path);
  kcp_range_pairs_free(&pairs);
}

static void check_arrays(unsigned id_bytes) {
  FILE *ids = fopen(npy_path, "rb"), *offsets = fopen(offsets_path, "rb");
  uint64_t offset, count = 0;
  assert_true(ids != NULL && offsets != NULL);
  for (uint64_t q = 0; q < QUERIES; ++q) {
    for (uint64_t v = 0; v < REFERENCES; ++v) {
      uint64_t id = 0;
      if (!is_neighbour(RANDOM, q, v)) continue;
      assert_int_equal(fread(&id, id_bytes, 1, ids), 1);
      assert_true(id == (id_bytes == 8 ? id_of(v) : (uint32_t)id_of(v)));
      ++count;
    }
    assert_int_equal(fread(&offset, sizeof offset, 1, offsets), 1);
    assert_int_equal(offset, count);
  }
  assert_int_equal(fgetc(ids), EOF);
  assert_int_equal(fgetc(offsets), EOF);
  fclose(ids);
  fclose(offsets);
}

static void test_arrays(void **state) {
  uint64_t reference_ids[REFERENCES], query_ids[QUERIES];
  struct kcp_range_runner runner = runner_of(reference_ids, query_ids);
  struct kcp_range_pairs pairs;
  (void)state;
  begin(&pairs, false, UINT64_MAX, UINT64_MAX);
  add_all(&pairs, RANDOM);
  for (unsigned id_bytes = 4; id_bytes <= 8; id_bytes += 4) {
    struct kcp_range_writer writer;
    assert_int_equal(kcp_range_writer_open(npy_path, &writer, NULL), KCP_OK);
    writer.id_bytes = id_bytes;
    assert_int_equal(kcp_range_writer_add(&writer, &runner, &pairs, NULL), KCP_OK);
    assert_int_equal(kcp_range_writer_commit(&writer, NULL), KCP_OK);
    kcp_range_writer_discard(&writer);
    check_arrays(id_bytes);
  }
  remove(npy_path);
  remove(offsets_path);
  kcp_range_pairs_free(&pairs);
}

/* More pairs than any disk has room for: nothing is written, and no file stays. */
static void test_disk_is_too_small(void **state) {
  const char *const data_path = "test_range_pairs_data.csv", *const paths[] = {csv_path, npy_path};
  const struct kcp_dataset_options options = {.text_layout = KCP_TEXT_COORDINATES_ONLY};
  struct kcp_dataset *dataset = NULL;
  uint64_t ids[2] = {0, 1};
  FILE *file = fopen(data_path, "w");
  (void)state;
  fputs("0,0\n1,1\n", file);
  fclose(file);
  assert_int_equal(kcp_dataset_open(data_path, &options, &dataset, NULL), KCP_OK);
  const struct kcp_range_runner runner = {
      .reference = dataset, .query = dataset, .reference_ids = ids, .query_ids = ids};
  for (int i = 0; i < 2; ++i) {
    struct kcp_range_writer writer;
    struct kcp_error error;
    assert_int_equal(kcp_range_writer_open(paths[i], &writer, &error), KCP_OK);
    assert_int_equal(kcp_range_writer_begin(&writer, &runner, UINT64_MAX / 32, &error), KCP_FAILED);
    assert_non_null(strstr(error.message, "nothing written"));
    kcp_range_writer_discard(&writer);
    assert_int_not_equal(access(paths[i], F_OK), 0);
  }
  assert_int_not_equal(access(offsets_path, F_OK), 0);
  kcp_dataset_close(dataset);
  remove(data_path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_collects),
      cmocka_unit_test(test_budget),
      cmocka_unit_test(test_lines),
      cmocka_unit_test(test_arrays),
      cmocka_unit_test(test_disk_is_too_small),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
