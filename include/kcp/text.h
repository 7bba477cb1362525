/* Numbers as people read them, and the nearest word to a mistyped one. */
#ifndef KCP_TEXT_H
#define KCP_TEXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A short text, returned by value so that several fit into one printf. */
struct kcp_text {
  char text[32];
};

struct kcp_text kcp_text_grouped(uint64_t number); /* 28,104 */
struct kcp_text kcp_text_amount(double number);    /* 4.1 million */
struct kcp_text kcp_text_short(double number);     /* 70.2M */
struct kcp_text kcp_text_bytes(double bytes);      /* 4.6 MB */
struct kcp_text kcp_text_duration(double seconds); /* 12 ms */
struct kcp_text kcp_text_clock(double seconds);    /* 0:18, 1:02:03 */

/* The best word seen so far for a mistyped one; start with kcp_suggestion_for. */
struct kcp_suggestion {
  const char *typed;
  const char *word; /* NULL while nothing is near enough */
  size_t distance;
};

struct kcp_suggestion kcp_suggestion_for(const char *typed);
void kcp_suggestion_offer(struct kcp_suggestion *suggestion, const char *word);

/* Letters to insert, remove, change or swap with the next to get from one word to the other. */
size_t kcp_edit_distance(const char *a, const char *b);

#ifdef __cplusplus
}
#endif
#endif
