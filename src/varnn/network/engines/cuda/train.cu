// Training of many small networks, one block each, from the first step to the last: windows are gathered, run
// forwards and backwards through time, and Adam moves the weights; then an epoch's validation loss says
// whether to go on. Nothing is launched in between. The equations are those of fused.py, in the same letters.
//
// Units are rows of a product and windows its columns, so that weights stay in registers as the left factor:
//
//     forwards    Z [k, b]  = W' F'              F = [h, u, x, 1], a row for each window b
//     backwards   G [k, i] += dz F               dz in the registers that Z was in, as the left factor
//                 dF [i, b] = W dz
//
// Products are tensor-core ones of 16 x 8 x 8 numbers. They take 11 bits of each factor, so a factor is split
// into a high and a low part, and three of the four products are summed: float32 but for the last two or
// three bits (Ootomo and Yokota, 2022).
//
// Given by the host: N_D inputs, N_K hidden units, N_M units of residual memory, N_AM and N_ACC (activation
// memory and accumulation: 0 or 1), N_RELU (else tanh), N_WIN rows of a window, N_LOSS of them loss rows, N_B
// windows at a time, a multiple of 8.

__device__ constexpr int up(int n, int to) { return (n + to - 1) / to * to; }
__device__ constexpr int larger(int a, int b) { return a > b ? a : b; }

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int D = N_D, K = N_K, M = N_M, WINDOW = N_WIN, LOSS = N_LOSS, B = N_B;
constexpr bool ACTIVATION = N_AM, ACCUMULATE = N_ACC, RELU = N_RELU;

// Columns of F, with columns of zeros up to a multiple of 8. With activation memory there is room for the
// states of all rows of a window, h and u, but not for the inputs as well, which have an array of their own;
// without it rows are h, x, 1. They are 4 (modulo 8) apart, so that the 32 numbers that a warp reads lie in
// 32 banks.
constexpr int U0 = ACTIVATION ? up(M, 8) : M;
constexpr int STATE = ACTIVATION ? U0 + up(K, 8) : up(M + D + 1, 8), INPUT = ACTIVATION ? up(D + 1, 8) : 0;
constexpr int STATE_ROW = STATE + 4, INPUT_ROW = INPUT + 4, SLOTS = WINDOW + (ACTIVATION ? 1 : 0);
constexpr int STATE_STEPS = STATE / 8, INPUT_STEPS = INPUT / 8, STEPS = STATE_STEPS + INPUT_STEPS;
constexpr int HIDDEN_STEPS = up(K, 8) / 8, MEMORY_STEPS = up(M, 8) / 8;

constexpr int HIDDEN_TILES = up(K, 16) / 16, MEMORY_TILES = up(M, 16) / 16, WINDOW_TILES = B / 8;
constexpr int BACK_TILES = MEMORY_TILES + (ACTIVATION ? HIDDEN_TILES : 0);
constexpr int DZ_ROW = up(K, 16) + 4, DA_ROW = up(M, 16) + 4;
constexpr int Y_PARTS = HIDDEN_TILES < WARPS ? HIDDEN_TILES : WARPS;

// The flat weights: fusion (x, h, u), its bias, readout, its bias, error, its bias, carry.
constexpr int ROWS = D + M + (ACTIVATION ? K : 0) + 1;
constexpr int READOUT = ROWS * K, READOUT_BIAS = READOUT + K, ERROR = READOUT_BIAS + 1,
              ERROR_BIAS = ERROR + M;
constexpr int CARRY = ERROR_BIAS + M, P = CARRY + (ACCUMULATE ? M * M : 0);

// The row of the fusion weights that a column multiplies; -1: none.
__device__ constexpr int row_of_input(int c) { return c < D ? c : c == D ? ROWS - 1 : -1; }
__device__ constexpr int row_of_state(int c) {
  return c < M ? D + c : !ACTIVATION ? row_of_input(c - M) : c >= U0 && c < U0 + K ? D + M + c - U0 : -1;
}

// How warps share tiles of 16 units: several each, or, where there are few, each with some of the windows.
template <int TILES>
struct Share {
  static constexpr int EACH = (TILES + WARPS - 1) / WARPS, TEAMS = TILES < WARPS ? WARPS / TILES : 1;
  static constexpr int COLUMNS = (WINDOW_TILES + TEAMS - 1) / TEAMS;
  static constexpr int TOGETHER = COLUMNS < 2   ? 1
                                  : COLUMNS < 4 ? 2
                                                : 4,
                       GROUPS = (COLUMNS + TOGETHER - 1) / TOGETHER;
  int team, first;
  __device__ explicit Share(int warp)
      : team(TILES < WARPS ? warp / TILES : 0), first(TILES < WARPS ? warp % TILES : warp) {}
  __device__ int tile(int j) const { return first + j * WARPS; }
  __device__ int column(int n) const { return team + n * TEAMS; }
  // Columns that are taken together; where they do not come out even, the last one is taken again.
  __device__ int column(int group, int c) const {
    return min(column(group * TOGETHER + c), WINDOW_TILES - 1);
  }
  __device__ bool again(int group, int c) const { return column(group * TOGETHER + c) >= WINDOW_TILES; }
  __device__ bool works() const { return team < TEAMS && team < WINDOW_TILES; }
  __device__ bool has(int j, int n) const {
    return team < TEAMS && tile(j) < TILES && column(n) < WINDOW_TILES;
  }
};
using Hidden = Share<HIDDEN_TILES>;
using Memory = Share<MEMORY_TILES>;
using Back = Share<BACK_TILES>;
constexpr int TOGETHER = Hidden::TOGETHER, CHAINS = TOGETHER == 1 ? 2 : 1;
constexpr int RECORD = larger(SLOTS * B * STATE_ROW, P);

struct Shared {
  alignas(16) float state[RECORD];                              // h and u of all rows; then the gradient
  alignas(16) float inputs[2][ACTIVATION ? B * INPUT_ROW : 1];  // of this row of the windows and of the next
  alignas(16) float dz[B * DZ_ROW];                             // or, without activation memory, [z > 0]
  alignas(16) float du[ACTIVATION ? B * DZ_ROW : 1];
  alignas(16) float da[2][ACCUMULATE ? B * DA_ROW : 1];
  alignas(16) float readout[HIDDEN_TILES * 16], error_weight[MEMORY_TILES * 16],
      error_bias[MEMORY_TILES * 16];
  alignas(16) float y[Y_PARTS * B], dy[MEMORY_TILES * B], g_now[B];  // B is a multiple of 8
  alignas(16) float error[WINDOW * B], g[WINDOW * B], label[WINDOW * B];
  float sums[2][WARPS], parts[ACTIVATION ? 1 : larger(THREADS, up(K, 32))];
  unsigned short
      mask[ACTIVATION ? 2 : WINDOW * Hidden::GROUPS * Hidden::EACH * THREADS];  // four bits of each column
  int ends[B];
  int stop;
};
extern "C" __constant__ int SIZES[4] = {(int)sizeof(Shared), THREADS, P, B};

struct Member {
  const float *x, *y;
  const int *order, *first;
  const float *vx, *vy;
  const int* vends;
  float* state;
  float *losses, *vlosses;
  int* progress;
  const int* stop;
  int vwindows, batch, epochs, last, patience, cosine;
  float rate, clip, keep;
};

constexpr unsigned ALL = 0xffffffffu;
constexpr int AT_ONCE =
    8;  // numbers of the card's memory that are asked for before any is used: all take as long as one

struct Left {
  float at[4];
};  // 16 x 8 numbers, as a warp holds them
struct Right {
  float at[2];
};  // 8 x 8

// A tensor core does not look at a number's last 13 bits: the number is its own high part, and this is the
// rest.
__device__ __forceinline__ float low(float v) {
  return v - __uint_as_float(__float_as_uint(v) & 0xffffe000u);
}
__device__ __forceinline__ Left low(const Left& v) {
  return {low(v.at[0]), low(v.at[1]), low(v.at[2]), low(v.at[3])};
}
__device__ __forceinline__ Right low(const Right& v) { return {low(v.at[0]), low(v.at[1])}; }
__device__ __forceinline__ void mma(float (&c)[4], const Left& a, const Right& b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a.at[0])), "r"(__float_as_uint(a.at[1])), "r"(__float_as_uint(a.at[2])),
        "r"(__float_as_uint(a.at[3])), "r"(__float_as_uint(b.at[0])), "r"(__float_as_uint(b.at[1])));
}
__device__ __forceinline__ void multiply(float (&c)[4], const Left& a, const Right& b) {
  mma(c, low(a), b), mma(c, a, low(b)), mma(c, a, b);
}
struct Product {  // a long sum of products, in three that do not wait for each other
  float high[4] = {}, left_low[4] = {}, right_low[4] = {};
  __device__ __forceinline__ void add(const Left& a, const Right& b) {
    mma(left_low, low(a), b), mma(high, a, b), mma(right_low, a, low(b));
  }
  __device__ __forceinline__ float operator[](int r) const { return high[r] + (left_low[r] + right_low[r]); }
};

// Low parts of weights are made once, before the loop over rows, but not where registers are too few to keep
// them.
__device__ __forceinline__ Left hidden_from_compiler(const Left& v) {
  Left same = v;
  asm volatile("" : "+f"(same.at[0]), "+f"(same.at[1]), "+f"(same.at[2]), "+f"(same.at[3]));
  return same;
}

// A warp's place in a tile: of a product it holds units `unit` and unit + 8 of windows `window` and window
// + 1.
struct Lane {
  int warp, unit, quad, window;
  __device__ Lane() {
    int tid = threadIdx.x;
    // Else the compiler works out the places of all weights once for all steps, and keeps them in memory.
    asm volatile("" : "+r"(tid));
    warp = tid >> 5 & (WARPS - 1), unit = tid >> 2 & 7, quad = tid & 3, window = 2 * quad;
  }
};
// Rows of 8 numbers from `column` on of 8 rows, which are columns of the right factor.
__device__ __forceinline__ Right rows_at(const float* rows, int stride, int column, const Lane& at) {
  const float* p = rows + (at.unit * stride + at.quad);
  return {p[column], p[column + 4]};
}
// The same numbers with rows as what is summed over, in the order in which a product leaves windows.
__device__ __forceinline__ Right across(const float* rows, int stride, int column, const Lane& at) {
  const float* p = rows + (at.window * stride + at.unit);
  return {p[column], p[column + stride]};
}
template <class Weight>
__device__ __forceinline__ Left weights(const Weight& weight, int unit, int column, const Lane& at) {
  unit += at.unit, column += at.quad;
  return {weight(unit, column), weight(unit + 8, column), weight(unit, column + 4),
          weight(unit + 8, column + 4)};
}
__device__ __forceinline__ float over_units(float v) {
  v += __shfl_xor_sync(ALL, v, 4);
  v += __shfl_xor_sync(ALL, v, 8);
  return v + __shfl_xor_sync(ALL, v, 16);
}
// Sums over units of 2, 4 or 8 numbers, of which the lanes of unit n get the n-th, in place of the first.
template <int N>
__device__ __forceinline__ void over_units(float (&v)[N], const Lane& at) {
#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
    if (half >= N) {  // units that get nothing
#pragma unroll
      for (int n = 0; n < N; n++) v[n] += __shfl_xor_sync(ALL, v[n], 4 * half);
      continue;
    }
    const bool upper = at.unit & half;
#pragma unroll
    for (int n = 0; n < half; n++) {
      const float kept = upper ? v[n + half] : v[n], given = upper ? v[n] : v[n + half];
      v[n] = kept + __shfl_xor_sync(ALL, given, 4 * half);
    }
  }
}
__device__ __forceinline__ float over_windows(float v) {
  v += __shfl_xor_sync(ALL, v, 1);
  return v + __shfl_xor_sync(ALL, v, 2);
}
__device__ __forceinline__ float over_block(float v, float* sums) {
  v = over_units(over_windows(v));
  __syncthreads();
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = v;
  __syncthreads();
  float all = 0.f;
  for (int w = 0; w < WARPS; w++) all += sums[w];
  return all;
}
__device__ __forceinline__ float memory_activation(float a) { return RELU ? (a <= 0.f ? 0.f : a) : tanhf(a); }
__device__ __forceinline__ bool unknown(float label) { return label != label; }

// ---------------------------------------------------------------- windows

// Inputs of a row of the windows, on their way: asked for before they are needed, and put down after. Without
// activation memory all are there from the beginning.
struct Inputs {
  static constexpr bool HELD = ACTIVATION && D > 0;
  static constexpr int EACH = larger(1, (B * D + THREADS - 1) / THREADS);
  const float* x;
  unsigned from[EACH];
  int to[EACH];
  float held[EACH];
  __device__ Inputs(const Shared& s, const float* all) : x(all) {
#pragma unroll
    for (int n = 0; n < EACH; n++) {
      const int one = min(n * THREADS + (int)threadIdx.x, B * D - 1), b = one / larger(1, D), i = one - b * D;
      from[n] = (unsigned)(s.ends[b] - (WINDOW - 1)) * D + i, to[n] = b * INPUT_ROW + i;
    }
  }
  __device__ __forceinline__ void ask(int t) {
#pragma unroll
    for (int n = 0; n < EACH; n++)
      if (HELD) held[n] = __ldg(x + from[n] + t * D);
  }
  __device__ __forceinline__ void put(Shared& s, int t) const {
#pragma unroll
    for (int n = 0; n < EACH; n++)
      if (HELD) s.inputs[t & 1][to[n]] = held[n];
  }
};

// Windows that end at some rows: labels, first inputs, an empty memory. Columns that are too many have no
// labels.
__device__ void begin_windows(Shared& s, const float* x, const float* y, const int* ends, int count) {
  const int tid = threadIdx.x;
  __syncthreads();
  for (int b = tid; b < B; b += THREADS) s.ends[b] = ends[min(b, count - 1)];
  for (int n = tid; n < B * STATE_ROW; n += THREADS) s.state[n] = 0.f;
  __syncthreads();
  float* rows = ACTIVATION ? s.inputs[0] : s.state + M;  // where inputs go: of two rows at a time, or of all
  constexpr int COUNT = (ACTIVATION ? 2 : WINDOW) * B, WIDTH = ACTIVATION ? INPUT_ROW : STATE_ROW;
  constexpr int PADDED = ACTIVATION ? INPUT_ROW - D : STATE_ROW - M - D;
  for (int n = tid; n < COUNT * PADDED; n += THREADS) {
    const int row = n / PADDED, c = n - row * PADDED;
    rows[row * WIDTH + D + c] = c == 0 ? 1.f : 0.f;
  }
  if (!ACTIVATION && D > 0)
    for (int from = tid; from < COUNT * D; from += AT_ONCE * THREADS) {
      float held[AT_ONCE];
      int to[AT_ONCE];
#pragma unroll
      for (int n = 0; n < AT_ONCE; n++) {
        const int one = min(from + n * THREADS, COUNT * D - 1), row = one / larger(1, D), i = one - row * D;
        const int t = row / B, b = row - t * B;
        held[n] = x[(long long)(s.ends[b] - (WINDOW - 1) + t) * D + i], to[n] = row * WIDTH + i;
      }
#pragma unroll
      for (int n = 0; n < AT_ONCE; n++) rows[to[n]] = held[n];
    }
  Inputs inputs(s, x);
  inputs.ask(0);
  for (int from = tid; from < WINDOW * B; from += AT_ONCE * THREADS) {
    float held[AT_ONCE];
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++) {
      const int one = min(from + n * THREADS, WINDOW * B - 1), t = one / B, b = one - t * B;
      held[n] = b < count ? y[s.ends[b] - (WINDOW - 1) + t] : __int_as_float(0x7fc00000);
    }
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
      if (from + n * THREADS < WINDOW * B) s.label[from + n * THREADS] = held[n];
  }
  inputs.put(s, 0);
  __syncthreads();
}

// ---------------------------------------------------------------- forwards

struct Forward {  // what is multiplied with, in registers for as long as weights stay what they are
  Left fusion[Hidden::EACH][STEPS], carry[Memory::EACH][ACCUMULATE ? MEMORY_STEPS : 1];
  float readout_bias;
};

__device__ __forceinline__ void load(Shared& s, Forward& f, const float* p) {
  const Lane at;
  const Hidden hidden(at.warp);
  const Memory memory(WARPS - 1 - at.warp);
  auto of_state = [p](int k, int c) {
    const int i = row_of_state(c);
    return i >= 0 && k < K ? p[i * K + k] : 0.f;
  };
  auto of_input = [p](int k, int c) {
    const int i = row_of_input(c);
    return i >= 0 && k < K ? p[i * K + k] : 0.f;
  };
  auto of_carry = [p](int m, int j) { return m < M && j < M ? p[CARRY + j * M + m] : 0.f; };
#pragma unroll
  for (int j = 0; j < Hidden::EACH; j++)
#pragma unroll
    for (int i = 0; i < STEPS; i++)
      f.fusion[j][i] = i < STATE_STEPS ? weights(of_state, hidden.tile(j) * 16, i * 8, at)
                                       : weights(of_input, hidden.tile(j) * 16, (i - STATE_STEPS) * 8, at);
  if (ACCUMULATE)
#pragma unroll
    for (int j = 0; j < Memory::EACH; j++)
#pragma unroll
      for (int i = 0; i < MEMORY_STEPS; i++)
        f.carry[j][i] = weights(of_carry, memory.tile(j) * 16, i * 8, at);
  for (int k = threadIdx.x; k < HIDDEN_TILES * 16; k += THREADS) s.readout[k] = k < K ? p[READOUT + k] : 0.f;
  for (int m = threadIdx.x; m < MEMORY_TILES * 16; m += THREADS) {
    s.error_weight[m] = m < M ? p[ERROR + m] : 0.f;
    s.error_bias[m] = m < M ? p[ERROR_BIAS + m] : 0.f;
  }
  f.readout_bias = p[READOUT_BIAS];
}

__device__ __forceinline__ void forwards(Shared& s, const Forward& f, const float* x) {
  const Lane at;
  const Hidden hidden(at.warp);
  Inputs coming(s, x);
  const Memory memory(WARPS - 1 - at.warp);  // from the other end: where tiles are few, other warps take them
  for (int t = 0; t < WINDOW; t++) {
    const float *state = s.state + t * B * STATE_ROW, *inputs = s.inputs[t & 1];
    float* next = s.state + (t + 1) * B * STATE_ROW;
    if (t + 1 < WINDOW) coming.ask(t + 1);
#pragma unroll 1
    for (int group = 0; group < Hidden::GROUPS; group++) {
      if (!hidden.works()) break;
      float y[TOGETHER * 2] = {};
#pragma unroll
      for (int j = 0; j < Hidden::EACH; j++) {
        if (hidden.tile(j) >= HIDDEN_TILES) continue;
        Product z[TOGETHER][CHAINS];
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
          const Left a = hidden_from_compiler(f.fusion[j][i]);
#pragma unroll
          for (int c = 0; c < TOGETHER; c++) {
            const int column = hidden.column(group, c) * 8;
            z[c][i % CHAINS].add(
                a, i < STATE_STEPS
                       ? rows_at(state + column * STATE_ROW, STATE_ROW, i * 8, at)
                       : rows_at(inputs + column * INPUT_ROW, INPUT_ROW, (i - STATE_STEPS) * 8, at));
          }
        }
        unsigned mask = 0;
        const float readout[2] = {s.readout[hidden.tile(j) * 16 + at.unit],
                                  s.readout[hidden.tile(j) * 16 + at.unit + 8]};
#pragma unroll
        for (int c = 0; c < TOGETHER; c++)
#pragma unroll
          for (int r = 0; r < 4; r++) {
            float sum = 0.f;
#pragma unroll
            for (int chain = 0; chain < CHAINS; chain++) sum += z[c][chain][r];
            const float u = sum <= 0.f ? 0.f : sum;
            y[2 * c + (r & 1)] = fmaf(readout[r >> 1], u, y[2 * c + (r & 1)]);
            if (!ACTIVATION) mask |= (u != 0.f) << (4 * c + r);
            const int k = hidden.tile(j) * 16 + at.unit + (r & 2) * 4,
                      b = hidden.column(group, c) * 8 + at.window + (r & 1);
            if (ACTIVATION && k < STATE - U0) next[b * STATE_ROW + U0 + k] = u;
          }
        if (!ACTIVATION)
          s.mask[((t * Hidden::GROUPS + group) * Hidden::EACH + j) * THREADS + threadIdx.x] = mask;
      }
      over_units(y, at);
      if (at.unit < TOGETHER * 2)
        s.y[hidden.first * B + hidden.column(group, at.unit >> 1) * 8 + at.window + (at.unit & 1)] = y[0];
    }
    float carried[Memory::EACH][Memory::COLUMNS][4] = {};
    if (ACCUMULATE && t > 0 && t + 1 < WINDOW)
#pragma unroll
      for (int j = 0; j < Memory::EACH; j++)
#pragma unroll
        for (int n = 0; n < Memory::COLUMNS; n++)
          if (memory.has(j, n)) {
            Product sum;
#pragma unroll
            for (int i = 0; i < MEMORY_STEPS; i++)
              sum.add(f.carry[j][i], rows_at(state + memory.column(n) * 8 * STATE_ROW, STATE_ROW, i * 8, at));
#pragma unroll
            for (int r = 0; r < 4; r++) carried[j][n][r] = sum[r];
          }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < Memory::COLUMNS; n++) {
      if (!memory.has(0, n)) continue;
      const int column = memory.column(n) * 8 + at.window;
      float e[2] = {f.readout_bias, f.readout_bias};
#pragma unroll
      for (int part = 0; part < Y_PARTS; part++) {
        const float2 y = *reinterpret_cast<const float2*>(&s.y[part * B + column]);
        e[0] += y.x, e[1] += y.y;
      }
      bool missing[2];
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const float label = s.label[t * B + column + r];
        missing[r] = unknown(label);
        e[r] = missing[r] ? 0.f : label - e[r];
        if (memory.first == 0 && at.unit == 0) s.error[t * B + column + r] = e[r];
      }
      if (t + 1 < WINDOW)
#pragma unroll
        for (int j = 0; j < Memory::EACH; j++)
          if (memory.has(j, n))
#pragma unroll
            for (int r = 0; r < 4; r++) {
              const int m = memory.tile(j) * 16 + at.unit + (r & 2) * 4, b = column + (r & 1);
              const float a = fmaf(s.error_weight[m], e[r & 1], s.error_bias[m]) + carried[j][n][r];
              if (m < U0)
                next[b * STATE_ROW + m] = missing[r & 1] ? state[b * STATE_ROW + m] : memory_activation(a);
            }
    }
    if (t + 1 < WINDOW) coming.put(s, t + 1);
    __syncthreads();
  }
}

// ---------------------------------------------------------------- backwards

constexpr int CARRY_EACH = ACCUMULATE ? (MEMORY_TILES * MEMORY_STEPS + WARPS - 1) / WARPS : 1;

struct Gradient {
  float fusion[Hidden::EACH][STEPS][4] = {}, carry[CARRY_EACH][4] = {};
  float readout[Hidden::EACH][2] = {}, error[Back::EACH][2] = {}, error_bias[Back::EACH][2] = {};
  float readout_bias = 0.f;
};

// The gradient of the sum of squares, not of their mean: of how many is known once all windows were seen.
__device__ __forceinline__ void backwards(Shared& s, Gradient& d, const float* p, const float* x) {
  const Lane at;
  const Hidden hidden(at.warp);
  const Back back(at.warp);
  const int tid = threadIdx.x;
  // Without activation memory dz is g [z > 0] w_o: [z > 0] is multiplied, exactly, and w_o belongs to the
  // weights.
  auto of_state = [&](int c, int k) {
    const int i = row_of_state(c < MEMORY_TILES * 16 ? (c < U0 ? c : STATE) : U0 + c - MEMORY_TILES * 16);
    return i >= 0 && k < K ? (ACTIVATION ? p[i * K + k] : p[i * K + k] * s.readout[k]) : 0.f;
  };
  auto of_carry = [&](int j, int m) { return j < M && m < M ? p[CARRY + j * M + m] : 0.f; };
  Left of_dz[Back::EACH][HIDDEN_STEPS], of_da[Back::EACH][ACCUMULATE ? MEMORY_STEPS : 1];
#pragma unroll
  for (int j = 0; j < Back::EACH; j++) {
#pragma unroll
    for (int i = 0; i < HIDDEN_STEPS; i++) of_dz[j][i] = weights(of_state, back.tile(j) * 16, i * 8, at);
    if (ACCUMULATE)
#pragma unroll
      for (int i = 0; i < MEMORY_STEPS; i++) of_da[j][i] = weights(of_carry, back.tile(j) * 16, i * 8, at);
  }
  Inputs coming(s, x);
  float held[Back::EACH][Back::COLUMNS][4] = {};
  for (int n = tid; n < WINDOW * B; n += THREADS) s.g[n] = n >= (WINDOW - LOSS) * B ? -2.f * s.error[n] : 0.f;
  for (int n = tid; n < MEMORY_TILES * B; n += THREADS) s.dy[n] = 0.f;
  if (ACTIVATION)
    for (int n = tid; n < B * DZ_ROW; n += THREADS) s.du[n] = 0.f;
  if (ACCUMULATE)
    for (int n = tid; n < 2 * B * DA_ROW; n += THREADS) s.da[0][n] = 0.f;
  __syncthreads();
  for (int t = WINDOW - 1; t >= 0; t--) {
    const float *state = s.state + t * B * STATE_ROW, *next = state + B * STATE_ROW,
                *inputs = s.inputs[t & 1];
    if (t > 0) coming.ask(t - 1);
#pragma unroll 1
    for (int group = 0; group < Hidden::GROUPS; group++) {
      if (!hidden.works()) break;
      float2 g[TOGETHER];
#pragma unroll
      for (int c = 0; c < TOGETHER; c++) {
        const int b = hidden.column(group, c) * 8 + at.window;
        g[c] = *reinterpret_cast<const float2*>(&s.g[t * B + b]);
#pragma unroll
        for (int part = 0; part < MEMORY_TILES; part++) {
          const float2 dy = *reinterpret_cast<const float2*>(&s.dy[part * B + b]);
          g[c].x -= dy.x, g[c].y -= dy.y;
        }
        if (hidden.again(group, c)) g[c] = make_float2(0.f, 0.f);
      }
      if (hidden.first == 0 && at.unit == 0)
#pragma unroll
        for (int c = 0; c < TOGETHER; c++) {
          d.readout_bias += g[c].x + g[c].y;
          if (!hidden.again(group, c))
            *reinterpret_cast<float2*>(&s.g_now[hidden.column(group, c) * 8 + at.window]) = g[c];
        }
#pragma unroll
      for (int j = 0; j < Hidden::EACH; j++) {
        if (hidden.tile(j) >= HIDDEN_TILES) continue;
        const unsigned mask =
            ACTIVATION ? 0 : s.mask[((t * Hidden::GROUPS + group) * Hidden::EACH + j) * THREADS + tid];
        Left a[TOGETHER];
#pragma unroll
        for (int c = 0; c < TOGETHER; c++) {
          float dz[4];
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const int k = hidden.tile(j) * 16 + at.unit + (r & 2) * 4,
                      b = hidden.column(group, c) * 8 + at.window + (r & 1);
            if (ACTIVATION) {
              const float u = k < STATE - U0 ? next[b * STATE_ROW + U0 + k] : 0.f,
                          of_y = r & 1 ? g[c].y : g[c].x;
              d.readout[j][r >> 1] = fmaf(of_y, u, d.readout[j][r >> 1]);
              dz[r] = u <= 0.f ? 0.f : fmaf(of_y, s.readout[k], s.du[b * DZ_ROW + k]);
            } else {
              dz[r] = mask >> (4 * c + r) & 1 ? 1.f : 0.f;
            }
          }
          a[c] = {dz[0], dz[2], dz[1], dz[3]};
        }
#pragma unroll
        for (int c = 0; c < TOGETHER; c++)
#pragma unroll
          for (int r = 0; r < 4; r++)
            if (!hidden.again(group, c))
              s.dz[(hidden.column(group, c) * 8 + at.window + (r & 1)) * DZ_ROW + hidden.tile(j) * 16 +
                   at.unit + (r & 2) * 4] = a[c].at[(r & 1) * 2 + (r >> 1)];
#pragma unroll
        for (int c = 0; c < TOGETHER; c++) {
          if (ACTIVATION && hidden.again(group, c)) continue;
          const int column = hidden.column(group, c) * 8;
          const Left less = low(a[c]);
#pragma unroll
          for (int from = 0; from < STEPS; from += AT_ONCE) {
            Right b[AT_ONCE];
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) {
              const int i = from + n;
              if (i >= STEPS) break;
              b[n] = i < STATE_STEPS
                         ? across(state + column * STATE_ROW, STATE_ROW, i * 8, at)
                         : across(inputs + column * INPUT_ROW, INPUT_ROW, (i - STATE_STEPS) * 8, at);
              if (!ACTIVATION) b[n] = {g[c].x * b[n].at[0], g[c].y * b[n].at[1]};
            }
            if (ACTIVATION)
#pragma unroll
              for (int n = 0; n < AT_ONCE; n++)
                if (from + n < STEPS) mma(d.fusion[j][from + n], less, b[n]);
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++)
              if (from + n < STEPS) mma(d.fusion[j][from + n], a[c], low(b[n]));
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++)
              if (from + n < STEPS) mma(d.fusion[j][from + n], a[c], b[n]);
          }
        }
      }
    }
    if (t == 0) break;
    if (ACCUMULATE && t + 1 < WINDOW)
#pragma unroll
      for (int n = 0; n < CARRY_EACH; n++) {
        const int tile = at.warp + n * WARPS, m = tile / MEMORY_STEPS * 16, from = tile % MEMORY_STEPS * 8;
        if (tile >= MEMORY_TILES * MEMORY_STEPS) break;
#pragma unroll
        for (int column = 0; column < B; column += 8) {
          const float* da = s.da[t & 1] + column * DA_ROW;
          const Right first = across(da, DA_ROW, m, at), second = across(da, DA_ROW, m + 8, at);
          multiply(d.carry[n], {first.at[0], second.at[0], first.at[1], second.at[1]},
                   across(state + column * STATE_ROW, STATE_ROW, from, at));
        }
      }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < Back::EACH; j++) {
      Product sums[Back::COLUMNS], of_memory[Back::COLUMNS];
      const int tile = back.tile(j);
      if (!back.works() || tile >= BACK_TILES) continue;
#pragma unroll
      for (int i = 0; i < HIDDEN_STEPS; i++) {
        const Left a = hidden_from_compiler(of_dz[j][i]);
#pragma unroll
        for (int n = 0; n < Back::COLUMNS; n++) {
          const Right b =
              rows_at(s.dz + min(back.column(n), WINDOW_TILES - 1) * 8 * DZ_ROW, DZ_ROW, i * 8, at);
          if (ACTIVATION)
            sums[n].add(a, b);
          else
            mma(sums[n].left_low, low(a), b), mma(sums[n].high, a, b);
        }
      }
      if (ACCUMULATE && t + 1 < WINDOW && tile < MEMORY_TILES)
#pragma unroll
        for (int i = 0; i < MEMORY_STEPS; i++) {
          const Left a = hidden_from_compiler(of_da[j][i]);
#pragma unroll
          for (int n = 0; n < Back::COLUMNS; n++)
            of_memory[n].add(a, rows_at(s.da[t & 1] + min(back.column(n), WINDOW_TILES - 1) * 8 * DA_ROW,
                                        DA_ROW, i * 8, at));
        }
#pragma unroll
      for (int n = 0; n < Back::COLUMNS; n++) {
        if (!back.has(j, n)) continue;
        const int column = back.column(n) * 8;
        float c[4] = {sums[n][0], sums[n][1], sums[n][2], sums[n][3]};
        if (tile >= MEMORY_TILES) {
#pragma unroll
          for (int r = 0; r < 4; r++)
            s.du[(column + at.window + (r & 1)) * DZ_ROW + (tile - MEMORY_TILES) * 16 + at.unit +
                 (r & 2) * 4] = c[r];
          continue;
        }
        if (!ACTIVATION)
#pragma unroll
          for (int r = 0; r < 2; r++) {
            const float g = s.g_now[column + at.window + r];
            c[r] *= g, c[r + 2] *= g;
          }
        if (ACCUMULATE)
#pragma unroll
          for (int r = 0; r < 4; r++) c[r] += of_memory[n][r];
        float dy[2] = {0.f, 0.f}, da[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const int m = tile * 16 + at.unit + (r & 2) * 4, b = column + at.window + (r & 1);
          const float h = m < U0 ? state[b * STATE_ROW + m] : 0.f, e = s.error[(t - 1) * B + b],
                      dh = c[r] + held[j][n][r];
          const bool missing = unknown(s.label[(t - 1) * B + b]);
          da[r] = missing ? 0.f : RELU ? (h <= 0.f ? 0.f : dh) : dh * (1.f - h * h);
          held[j][n][r] = missing ? dh : 0.f;
          dy[r & 1] = fmaf(da[r], s.error_weight[m], dy[r & 1]);
          d.error[j][r >> 1] = fmaf(e, da[r], d.error[j][r >> 1]);
          d.error_bias[j][r >> 1] += da[r];
          if (ACCUMULATE) s.da[(t - 1) & 1][b * DA_ROW + m] = da[r];
        }
        dy[0] = over_units(dy[0]), dy[1] = over_units(dy[1]);
        if (at.unit == 0)
          *reinterpret_cast<float2*>(&s.dy[tile * B + column + at.window]) = make_float2(dy[0], dy[1]);
      }
    }
    coming.put(s, t - 1);
    __syncthreads();
  }
}

// The gradient in the order of the flat weights, where the windows' states were. Teams add in turn, so that
// the same training gives the same bits again.
__device__ __forceinline__ void collect(Shared& s, const Gradient& d, const float* p) {
  const Lane at;
  const Hidden hidden(at.warp);
  const Back back(at.warp);
  float* gradient = s.state;
  __syncthreads();
  for (int n = threadIdx.x; n < P; n += THREADS) gradient[n] = 0.f;
  const float readout_bias = over_block(d.readout_bias, s.sums[0]);  // and all wait for the zeros
  for (int team = 0; team < larger(Hidden::TEAMS, Back::TEAMS); team++) {
    if (hidden.team == team)
#pragma unroll
      for (int j = 0; j < Hidden::EACH; j++) {
        if (!hidden.has(j, 0)) continue;
#pragma unroll
        for (int i = 0; i < STEPS; i++)
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const int k = hidden.tile(j) * 16 + at.unit + (r & 2) * 4,
                      c = (i < STATE_STEPS ? i : i - STATE_STEPS) * 8 + at.window + (r & 1);
            const int row = i < STATE_STEPS ? row_of_state(c) : row_of_input(c);
            if (row >= 0 && k < K) gradient[row * K + k] += d.fusion[j][i][r];
          }
        if (ACTIVATION)
#pragma unroll
          for (int r = 0; r < 2; r++) {
            const int k = hidden.tile(j) * 16 + at.unit + r * 8;
            const float sum = over_windows(d.readout[j][r]);
            if (at.quad == 0 && k < K) gradient[READOUT + k] += sum;
          }
      }
    if (back.team == team)
#pragma unroll
      for (int j = 0; j < Back::EACH; j++) {
        if (!back.has(j, 0) || back.tile(j) >= MEMORY_TILES) continue;
#pragma unroll
        for (int r = 0; r < 2; r++) {
          const int m = back.tile(j) * 16 + at.unit + r * 8;
          const float error = over_windows(d.error[j][r]), bias = over_windows(d.error_bias[j][r]);
          if (at.quad == 0 && m < M) gradient[ERROR + m] += error, gradient[ERROR_BIAS + m] += bias;
        }
      }
    __syncthreads();
  }
  if (threadIdx.x == 0) gradient[READOUT_BIAS] = readout_bias;
  if (ACCUMULATE)
#pragma unroll
    for (int n = 0; n < CARRY_EACH; n++)
#pragma unroll
      for (int r = 0; r < 4; r++) {
        const int tile = at.warp + n * WARPS, m = tile / MEMORY_STEPS * 16 + at.unit + (r & 2) * 4;
        const int from = tile % MEMORY_STEPS * 8 + at.window + (r & 1);
        if (m < M && from < M) gradient[CARRY + from * M + m] = d.carry[n][r];
      }
  if (!ACTIVATION) {  // so far it is that of [z > 0] F without w_o
    constexpr int WIDTH = up(K, 32), PARTS = larger(1, THREADS / WIDTH), EACH = (ROWS + PARTS - 1) / PARTS;
    for (int n = threadIdx.x; n < PARTS * WIDTH; n += THREADS) {
      const int part = n / WIDTH, k = min(n - part * WIDTH, K - 1);
      float sum = 0.f;
      for (int from = part * EACH; from < min((part + 1) * EACH, ROWS); from += AT_ONCE) {
        float weight[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) weight[i] = p[min(from + i, ROWS - 1) * K + k];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
          if (from + i >= min((part + 1) * EACH, ROWS)) break;
          sum = fmaf(weight[i], gradient[(from + i) * K + k], sum);
        }
      }
      s.parts[n] = sum;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < K; k += THREADS) {
      float sum = 0.f;
      for (int part = 0; part < PARTS; part++) sum += s.parts[part * WIDTH + k];
      gradient[READOUT + k] = sum;
    }
    for (int n = threadIdx.x; n < ROWS * K; n += THREADS) gradient[n] *= s.readout[n % K];
  }
  __syncthreads();
}

// Of a batch of more windows than are taken at a time, the gradient is summed up outside.
__device__ __forceinline__ void add_up(Shared& s, float* sum, bool first, bool last) {
  if (first && last) return;
  for (int n = threadIdx.x; n < P; n += THREADS) {
    const float all = s.state[n] + (first ? 0.f : sum[n]);
    (last ? s.state[n] : sum[n]) = all;
  }
  __syncthreads();
}

// ---------------------------------------------------------------- one member

// Adam on a share of the gradient: of each error in their mean.
__device__ __forceinline__ void adam(Shared& s, const Member& me, float share, float rate, int number) {
  const float* gradient = s.state;
  float *weight = me.state, *mean = weight + P, *square = mean + P, *average = square + P;
  const float correction = sqrtf(1.f - powf(0.999f, (float)number));
  const float size = rate * correction / (1.f - powf(0.9f, (float)number)), epsilon = 1e-7f * correction;
  float scale = share;
  if (me.clip > 0.f) {
    float squares = 0.f;
    for (int n = threadIdx.x; n < P; n += THREADS) squares = fmaf(gradient[n], gradient[n], squares);
    scale *= fminf(1.f, me.clip / (share * sqrtf(over_block(squares, s.sums[0])) + 1e-12f));
  }
  const float mix = me.keep > 0.f ? 1.f - fminf(me.keep, (float)number / (float)(number + 9)) : 1.f;
  for (int from = threadIdx.x; from < P; from += AT_ONCE * THREADS) {
    float w[AT_ONCE], m[AT_ONCE], v[AT_ONCE], a[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int n = min(from + i * THREADS, P - 1);
      w[i] = weight[n], m[i] = mean[n], v[i] = square[n], a[i] = average[n];
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int n = from + i * THREADS;
      if (n >= P) break;
      const float g = scale * gradient[n];
      m[i] = fmaf(0.1f, g, 0.9f * m[i]), v[i] = fmaf(0.001f * g, g, 0.999f * v[i]);
      w[i] -= size * m[i] / (sqrtf(v[i]) + epsilon);
      mean[n] = m[i], square[n] = v[i], weight[n] = w[i], average[n] = fmaf(mix, w[i] - a[i], a[i]);
    }
  }
  __syncthreads();
}

// Mean loss of an epoch; NaN where the host said stop.
__device__ float train_epoch(Shared& s, const Member& me, int epoch, int& number) {
  const int begin = me.first[epoch], windows = me.first[epoch + 1] - begin,
            steps = (windows + me.batch - 1) / me.batch;
  double total = 0;
  for (int step = 0; step < steps; step++) {
    if (threadIdx.x == 0)
      s.stop = number % 64 == 0 ? *(volatile const int*)me.stop : 0;  // it lies in the host's memory: far
    const int* ends = me.order + begin + step * me.batch;
    const int count = min(me.batch, windows - step * me.batch);
    float known = 0.f, squares = 0.f;
    __syncthreads();
    if (s.stop) return __int_as_float(0x7fc00000);
    for (int from = 0; from < count; from += B) {
      begin_windows(s, me.x, me.y, ends + from, min(B, count - from));
      {
        Forward f;
        load(s, f, me.state);
        __syncthreads();
        forwards(s, f, me.x);
      }
      for (int n = (WINDOW - LOSS) * B + threadIdx.x; n < WINDOW * B; n += THREADS) {
        squares = fmaf(s.error[n], s.error[n], squares);
        known += !unknown(s.label[n]);
      }
      Gradient d;
      backwards(s, d, me.state, me.x);
      collect(s, d, me.state);
      add_up(s, me.state + 5 * P, from == 0, from + B >= count);
    }
    known = over_block(known, s.sums[0]);
    total += (double)(over_block(squares, s.sums[1]) / known) * count;
    const float done = ((float)epoch + (float)step / (float)steps) / (float)me.epochs;
    adam(s, me, 1.f / known, me.cosine ? me.rate * 0.5f * (1.f + cospif(done)) : me.rate, ++number);
  }
  return (float)(total / windows);
}

__device__ float validate(Shared& s, const Member& me, const float* p) {
  Forward f;
  load(s, f, p);
  double squares = 0;
  float known = 0.f;
  for (int from = 0; from < me.vwindows; from += B) {
    begin_windows(s, me.vx, me.vy, me.vends + from, min(B, me.vwindows - from));
    forwards(s, f, me.vx);
    for (int n = (WINDOW - LOSS) * B + threadIdx.x; n < WINDOW * B; n += THREADS)
      if (!unknown(s.label[n])) squares += (double)s.error[n] * s.error[n], known += 1.f;
  }
  known = over_block(known, s.sums[0]);
  return over_block((float)squares, s.sums[1]) / fmaxf(known, 1.f);
}

// One block has a multiprocessor to itself, for it needs most of its shared memory.
extern "C" __global__ void __launch_bounds__(THREADS, 1) train(const Member* members) {
  extern __shared__ __align__(16) char memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const Member me = members[blockIdx.x];
  float *kept = me.state + (me.keep > 0.f ? 3 * P : 0), *best = me.state + 4 * P;
  float lowest = __int_as_float(0x7f800000);
  int number = 0, best_epoch = 0;
  for (int epoch = 0; epoch < me.last; epoch++) {
    const float loss = train_epoch(s, me, epoch, number);
    if (s.stop) break;
    float validated = 0.f;
    if (me.vwindows > 0) validated = validate(s, me, kept);
    const bool better = me.vwindows > 0 ? validated < lowest : true;
    if (better) {
      lowest = validated, best_epoch = epoch + 1;
      for (int n = threadIdx.x; n < P; n += THREADS) best[n] = kept[n];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      me.losses[epoch] = loss, me.vlosses[epoch] = validated;
      me.progress[1] = best_epoch;
      __threadfence_system();
      *(volatile int*)me.progress = epoch + 1;
    }
    if (!(fabsf(loss) < __int_as_float(0x7f800000))) break;
    if (me.vwindows > 0 && me.patience > 0 && epoch + 1 - best_epoch >= me.patience) break;
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) me.progress[2] = 1;
}
