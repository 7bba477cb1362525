/* What is noted of the coordinates as they are read: extremes, and whether all are finite. */
#ifndef KCP_COORDINATE_SURVEY_H
#define KCP_COORDINATE_SURVEY_H

#include "kcp/dataset.h"

/* Extremes of coordinates; each thread keeps its own and adds it to that of the dataset. */
struct kcp_survey {
  double smallest_magnitude;
  double *minimum; /* per dimension; one allocation with `maximum` */
  double *maximum;
};

enum kcp_status kcp_survey_begin(uint32_t dimensions, struct kcp_survey *survey,
                                 struct kcp_error *error);
void kcp_survey_free(struct kcp_survey *survey);

/* Adds `count` values of coordinate j to the survey; false, with a survey of no use, when one is
 * not finite. */
bool kcp_survey_values(uint32_t j, const double *values, uint64_t count, struct kcp_survey *survey);

/* The same for all coordinates of the points. */
bool kcp_survey_points(const struct kcp_points *points, struct kcp_survey *survey);

/* Widens the range to what the survey saw. */
void kcp_range_add(struct kcp_coordinate_range *range, const struct kcp_survey *survey);

#endif
