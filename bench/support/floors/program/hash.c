// How blocks are named: by OpenSSL, which Node has too, with SHA-256 or BLAKE2b, or with SHA-256 two blocks at a time. The rounds of one
// block wait for each other, so the processor's instructions are idle half of the time unless there is another block to go on with.
#include "floor.h"
#include <dlfcn.h>

static int is_paired;

static struct {
  void *(*new_context)(void);
  int (*init)(void *, const void *, void *);
  int (*update)(void *, const void *, size_t);
  int (*final)(void *, unsigned char *, unsigned *);
  const void *algorithm;
} openssl;

static void open_openssl(const char *algorithm) {
  void *library = dlopen("libcrypto.so.3", RTLD_NOW);
  if (!library) library = dlopen("libcrypto.so", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  openssl.new_context = (void *(*)(void))dlsym(library, "EVP_MD_CTX_new");
  openssl.init = (int (*)(void *, const void *, void *))dlsym(library, "EVP_DigestInit_ex");
  openssl.update = (int (*)(void *, const void *, size_t))dlsym(library, "EVP_DigestUpdate");
  openssl.final = (int (*)(void *, unsigned char *, unsigned *))dlsym(library, "EVP_DigestFinal_ex");
  const void *(*choose)(void) = (const void *(*)(void))dlsym(library, algorithm);
  if (!openssl.new_context || !openssl.init || !openssl.update || !openssl.final || !choose) die("libcrypto");
  openssl.algorithm = choose();
}

/** A name is the first 32 bytes: BLAKE2b-512 makes 64. */
static void hash_one(const uint8_t *data, size_t bytes, uint8_t *name) {
  static _Thread_local void *context;
  uint8_t digest[64];
  if (!context) context = need(openssl.new_context());
  if (!openssl.init(context, openssl.algorithm, NULL)) die("libcrypto");
  openssl.update(context, data, bytes);
  openssl.final(context, digest, NULL);
  memcpy(name, digest, 32);
}

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define USES_SHA __attribute__((target("sha,sse4.1,ssse3")))

static int has_sha(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

/** Sixty-four bytes of each of two messages. `state` is ABEF, CDGH, as the instructions take them. */
USES_SHA static inline void compress_pair(__m128i state[2][2], const uint8_t *const data[2]) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
  __m128i words[2][4], abef[2], cdgh[2];
  for (int lane = 0; lane < 2; lane++) {
    abef[lane] = state[lane][0];
    cdgh[lane] = state[lane][1];
    for (int i = 0; i < 4; i++)
      words[lane][i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data[lane] + 16 * i)), swap);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    const __m128i constants = _mm_loadu_si128((const __m128i *)(K + 4 * i));
#pragma GCC unroll 2
    for (int lane = 0; lane < 2; lane++) {
      __m128i *at = words[lane];
      const __m128i last = at[(i + 3) & 3];
      __m128i sum = _mm_add_epi32(at[i & 3], constants);
      cdgh[lane] = _mm_sha256rnds2_epu32(cdgh[lane], abef[lane], sum);
      abef[lane] = _mm_sha256rnds2_epu32(abef[lane], cdgh[lane], _mm_shuffle_epi32(sum, 0x0e));
      if (i < 12) {
        const __m128i shifted = _mm_alignr_epi8(last, at[(i + 2) & 3], 4);
        const __m128i mixed = _mm_add_epi32(_mm_sha256msg1_epu32(at[i & 3], at[(i + 1) & 3]), shifted);
        at[i & 3] = _mm_sha256msg2_epu32(mixed, last);
      }
    }
  }
  for (int lane = 0; lane < 2; lane++) {
    state[lane][0] = _mm_add_epi32(state[lane][0], abef[lane]);
    state[lane][1] = _mm_add_epi32(state[lane][1], cdgh[lane]);
  }
}

USES_SHA static void hash_pair(const uint8_t *first, const uint8_t *second, size_t bytes, uint8_t (*names)[32]) {
  const __m128i abef = _mm_set_epi32(0x6a09e667, 0xbb67ae85, 0x510e527f, 0x9b05688c);
  const __m128i cdgh = _mm_set_epi32(0x3c6ef372, 0xa54ff53a, 0x1f83d9ab, 0x5be0cd19);
  __m128i state[2][2] = {{abef, cdgh}, {abef, cdgh}};
  for (size_t at = 0; at < bytes; at += 64) {
    const uint8_t *const data[2] = {first + at, second + at};
    compress_pair(state, data);
  }
  uint8_t end[64] = {0x80};
  for (int i = 0; i < 8; i++) end[63 - i] = (uint8_t)((uint64_t)bytes * 8 >> (8 * i));
  const uint8_t *const ends[2] = {end, end};
  compress_pair(state, ends);
  for (int lane = 0; lane < 2; lane++) {
    uint32_t halves[2][4];
    memcpy(halves, state[lane], sizeof halves);
    const uint32_t words[8] = {halves[0][3], halves[0][2], halves[1][3], halves[1][2],
                               halves[0][1], halves[0][0], halves[1][1], halves[1][0]};
    for (int i = 0; i < 8; i++)
      for (int byte = 0; byte < 4; byte++) names[lane][4 * i + byte] = (uint8_t)(words[i] >> (24 - 8 * byte));
  }
}
#else
static int has_sha(void) { return 0; }
static void hash_pair(const uint8_t *a, const uint8_t *b, size_t bytes, uint8_t (*names)[32]) {
  hash_one(a, bytes, names[0]);
  hash_one(b, bytes, names[1]);
}
#endif

void choose_hash(const char *name) {
  open_openssl(!strcmp(name, "blake2b-256") ? "EVP_blake2b512" : "EVP_sha256");
  is_paired = !strcmp(name, "pairs");
  if (is_paired && !has_sha()) {
    fprintf(stderr, "this processor has no instructions for SHA-256\n");
    exit(3);
  }
}

size_t hash_blocks(const uint8_t *data, size_t bytes, uint8_t (*names)[32]) {
  size_t at = 0, count = 0;
  for (; is_paired && bytes - at >= 2 * BLOCK; at += 2 * BLOCK, count += 2)
    hash_pair(data + at, data + at + BLOCK, BLOCK, names + count);
  for (; at < bytes; at += BLOCK, count++) hash_one(data + at, bytes - at < BLOCK ? bytes - at : BLOCK, names[count]);
  return count;
}
