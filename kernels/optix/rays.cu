/* Section IV-D of RT-HiSS as rays: programs of OptiX, compiled to PTX of their own and by the
 * driver for the device. A query is a ray that is a point, from tmin 0 to tmax 1e-16; hardware or
 * software finds boxes near it, and the intersection program notes the primitive and reports no
 * hit, so that traversal goes on.
 *
 * Boxes are found conservatively (rt_hiss_rays.cu makes them wider than they are): the program asks
 * kcp_box_holds of the boxes themselves, and is the same in both passes, so that what is met is
 * what every other index finds. It may be called twice for a primitive, which OptiX allows: see
 * rt_hiss_rays.cu.
 *
 * Payload words: entries so far, the query's point in the frame (3), the end of the query's places.
 * Launch: a ray a query. Intrinsics are called by their names, which the driver's compiler knows.
 */
#include "optix/launch.cuh"

extern "C" {
__constant__ struct kcp_ray_launch kcp_ray_launch_;
}

enum { PAYLOAD_NEXT, PAYLOAD_POINT, PAYLOAD_END = PAYLOAD_POINT + KCP_RANGE_AXES };

static const unsigned everything_visible = 255;
static const unsigned no_hit_programs = 1 | 8; /* neither any-hit nor closest-hit */

__device__ static uint32_t launch_index() {
  uint32_t index;
  asm("call (%0), _optix_get_launch_index_x, ();" : "=r"(index));
  return index;
}

__device__ static uint32_t primitive_index() {
  uint32_t index;
  asm("call (%0), _optix_read_primitive_idx, ();" : "=r"(index));
  return index;
}

template <int word>
__device__ static uint32_t get_payload() {
  uint32_t value;
  asm volatile("call (%0), _optix_get_payload, (%1);" : "=r"(value) : "r"(word));
  return value;
}

template <int word>
__device__ static void set_payload(uint32_t value) {
  asm volatile("call _optix_set_payload, (%0, %1);" ::"r"(word), "r"(value));
}

/* Traces one ray; payload[] goes with it and comes back. The call has 32 words whatever their
 * number; those beyond KCP_RAY_PAYLOAD are not there. Its arguments: type of payload, structure,
 * origin, direction, tmin, tmax, time, visibility, flags, offset and stride among hit records, miss
 * record, number of words, words. */
#define SIX(OPERAND) OPERAND ", " OPERAND ", " OPERAND ", " OPERAND ", " OPERAND ", " OPERAND

__device__ static void trace(uint64_t structure, const float origin[3],
                             uint32_t payload[KCP_RAY_PAYLOAD]) {
  const float along = 1, least = 0, most = 1e-16f, time = 0;
  const uint32_t none = 0, words = KCP_RAY_PAYLOAD;
  uint32_t u[32 - KCP_RAY_PAYLOAD];
  static_assert(KCP_RAY_PAYLOAD == 5, "the operands below");
  asm volatile(
      "call (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31), _optix_trace_typed_32, "
      "(%47, %32, %33, %34, %35, %36, %36, %36, %37, %38, %39, %40, %41, %47, %47, %47, %48, "
      "%42, %43, %44, %45, %46, " SIX("%47") ", " SIX("%47") ", " SIX("%47") ", " SIX("%47") ", "
      "%47, %47, %47);"
      : "=r"(payload[0]), "=r"(payload[1]), "=r"(payload[2]), "=r"(payload[3]), "=r"(payload[4]),
        "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]), "=r"(u[4]), "=r"(u[5]), "=r"(u[6]),
        "=r"(u[7]), "=r"(u[8]), "=r"(u[9]), "=r"(u[10]), "=r"(u[11]), "=r"(u[12]), "=r"(u[13]),
        "=r"(u[14]), "=r"(u[15]), "=r"(u[16]), "=r"(u[17]), "=r"(u[18]), "=r"(u[19]), "=r"(u[20]),
        "=r"(u[21]), "=r"(u[22]), "=r"(u[23]), "=r"(u[24]), "=r"(u[25]), "=r"(u[26])
      : "l"(structure), "f"(origin[0]), "f"(origin[1]), "f"(origin[2]), "f"(along), "f"(least),
        "f"(most), "f"(time), "r"(everything_visible), "r"(no_hit_programs), "r"(payload[0]),
        "r"(payload[1]), "r"(payload[2]), "r"(payload[3]), "r"(payload[4]), "r"(none), "r"(words)
      : "memory");
}

/* Places that the second pass found nothing for say once more what the first one says. */
__device__ static void fill_up(uint64_t q, uint32_t first, uint32_t next, uint32_t end) {
  const struct kcp_hunt_listing &to = kcp_ray_launch_.listing;
  if (next > end || (next == first && next < end)) atomicAdd(kcp_ray_launch_.disagreements, 1ull);
  for (; next < end; ++next) {
    to.met[next] = next > first ? to.met[first] : 0;
    to.met_by[next] = (uint32_t)q;
    to.numbers[next] = next;
  }
}

extern "C" __global__ void __raygen__hunt() {
  const struct kcp_ray_launch &launch = kcp_ray_launch_;
  const struct kcp_hunt_listing &to = launch.listing;
  const uint64_t q = launch.first + launch_index();
  const bool counts = launch.hits != NULL;
  const uint32_t first = counts ? 0 : (uint32_t)(to.hit_firsts[q] - to.base);
  const uint32_t end = counts ? 0 : (uint32_t)(to.hit_firsts[q + 1] - to.base);
  if (!counts && first == end) return;
  const struct kcp_frame_point point = kcp_hunt_point(launch.hunt, q);
  float origin[KCP_RANGE_AXES];
  uint32_t payload[KCP_RAY_PAYLOAD];
  payload[PAYLOAD_NEXT] = first;
  payload[PAYLOAD_END] = end;
  for (int j = 0; j < KCP_RANGE_AXES; ++j) {
    origin[j] = kcp_ray_coordinate(point.axis[j]);
    payload[PAYLOAD_POINT + j] = __float_as_uint(point.axis[j]);
  }
  trace(launch.structure, origin, payload);
  if (counts)
    launch.hits[q] = payload[PAYLOAD_NEXT];
  else
    fill_up(q, first, payload[PAYLOAD_NEXT], end);
}

extern "C" __global__ void __miss__nothing() {}

extern "C" __global__ void __intersection__primitive() {
  const struct kcp_ray_launch &launch = kcp_ray_launch_;
  const struct kcp_range_hunt &hunt = launch.hunt;
  const uint32_t primitive = primitive_index();
  const struct kcp_frame_point point = {{__uint_as_float(get_payload<PAYLOAD_POINT>()),
                                         __uint_as_float(get_payload<PAYLOAD_POINT + 1>()),
                                         __uint_as_float(get_payload<PAYLOAD_POINT + 2>())}};
  if (!kcp_box_holds(&hunt.index.bvh.boxes[primitive], point)) return;
  const uint64_t q = launch.first + launch_index();
  if (!(hunt.is_narrow ? kcp_hunt_reaches<float>(hunt, q, primitive)
                       : kcp_hunt_reaches<double>(hunt, q, primitive)))
    return;
  const uint32_t next = get_payload<PAYLOAD_NEXT>();
  if (next < get_payload<PAYLOAD_END>()) { /* never in the first pass */
    const struct kcp_hunt_listing &to = launch.listing;
    to.met[next] = primitive;
    to.met_by[next] = (uint32_t)q;
    to.numbers[next] = next;
  }
  set_payload<PAYLOAD_NEXT>(next + 1);
}
