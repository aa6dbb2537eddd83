// What the records of test/makedata look like from inside.
#ifndef RANKFS_RECORD_H
#define RANKFS_RECORD_H

#include "rankfs_test.h"

// mix is the finalizer of splitmix64.
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

// check_generated holds a record of `makedata lmdb` or `fixed` against its own
// first eight bytes, its index.
static inline const char *check_generated(const unsigned char *p, size_t n, uint64_t seed)
{
	const uint64_t golden = 0x9e3779b97f4a7c15u;
	uint64_t index, want;
	if (n < 8)
		return "shorter than the index it begins with";
	memcpy(&index, p, 8);
	uint64_t h = mix(seed ^ index * golden);
	for (size_t j = 1; j * 8 < n; j++) {
		size_t have = n - j * 8 < 8 ? n - j * 8 : 8;
		want = mix(h + j * golden);
		if (memcmp(p + j * 8, &want, have) != 0)
			return "bytes that do not follow from its index";
	}
	return NULL;
}

// varint reads one at *p and moves on; false if it does not end before end.
static inline bool varint(const unsigned char **p, const unsigned char *end, uint64_t *x)
{
	*x = 0;
	for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
		unsigned char b = *(*p)++;
		*x |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return true;
	}
	return false;
}

// check_datum reads a Caffe Datum, whose fields are 1 channels, 2 height,
// 3 width, 4 data, 5 label, 6 float_data, 7 encoded, and holds the length of its
// data against its shape.
static inline const char *check_datum(const unsigned char *p, size_t n)
{
	const unsigned char *end = p + n;
	uint64_t field[8] = {0}, tag, x;
	while (p < end) {
		if (!varint(&p, end, &tag))
			return "not a Datum: a tag is cut off";
		switch (tag & 7) {
		case 0:
			if (!varint(&p, end, &x))
				return "not a Datum: a number is cut off";
			break;
		case 2: // of data and the like the length is kept
			if (!varint(&p, end, &x) || x > (uint64_t)(end - p))
				return "not a Datum: bytes are cut off";
			p += x;
			break;
		case 5: // float_data, one at a time
			x = 4;
			if (end - p < 4)
				return "not a Datum: a float is cut off";
			p += 4;
			break;
		default:
			return "not a Datum: no field of Datum is so encoded";
		}
		if (tag >> 3 < 8)
			field[tag >> 3] = x;
	}
	for (int k = 1; k <= 3; k++)
		if (field[k] == 0 || field[k] > 1 << 16)
			return "not a Datum: its shape is out of bounds";
	if (!field[7] && field[4] != field[1] * field[2] * field[3])
		return "a Datum whose data is not channels * height * width bytes";
	return NULL;
}

#endif
