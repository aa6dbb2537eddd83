package order

import (
	"math"
	"math/bits"
)

// A permutation is, for each key, a permutation of [0,n) that holds no table.
//
// It is a Feistel network on the two digits of x = l*b + r, with l in [0,a)
// and r in [0,b). A round adds to one digit a hash of the other, modulo the
// digit's base; whatever the hash, that can be undone, so any number of rounds
// is a bijection of [0,a*b). As a is about the root of n, a*b is less than n+a:
// an x that lands in [n,a*b) goes through again until it comes out below n,
// which keeps the bijection and is rare.
//
// a is even because adding to a digit of odd base is an even permutation:
// with two odd bases half of all permutations would never come.
type permutation struct {
	n, a, b uint64
	rounds  uint64 // even
}

func newPermutation(n uint64) permutation {
	a := evenRoot(n)
	return permutation{n: n, a: a, b: (n-1)/a + 1, rounds: rounds(n)}
}

// rounds is the number of rounds of a network of n values. What a round keeps
// longest is a grid: records that share digits in both directions, half a
// base apart. They stay a grid with probability 2/b each round, so that of n
// from 64 on, less than 2^-22 is left and much less than comes by chance. The
// smallest networks forget more slowly: by counting all permutations of 8 for
// 10 million keys, 24 rounds can still be told from chance, 48 cannot.
func rounds(n uint64) uint64 {
	switch {
	case n < 16:
		return 48
	case n < 64:
		return 24
	case n < 1024:
		return 12
	}
	return 10
}

// evenRoot is the least even a with a*a >= n, for 0 < n <= 1<<63.
func evenRoot(n uint64) uint64 {
	a := uint64(math.Sqrt(float64(n))) // off by one at most
	for a*a >= n {
		a--
	}
	for a*a < n || a&1 != 0 {
		a++
	}
	return a
}

func (p *permutation) at(k key, x uint64) uint64 {
	for {
		l, r := x/p.b, x%p.b
		h := k.first
		for range p.rounds / 2 {
			l += below(p.a, r^h)
			l = min(l, l-p.a)
			h += k.step
			r += below(p.b, l^h)
			r = min(r, r-p.b)
			h += k.step
		}
		if x = l*p.b + r; x < p.n {
			return x
		}
	}
}

// position undoes at, round by round.
func (p *permutation) position(k key, x uint64) uint64 {
	for {
		l, r := x/p.b, x%p.b
		h := k.first + p.rounds*k.step
		for range p.rounds / 2 {
			h -= k.step
			r -= below(p.b, l^h)
			r = min(r, r+p.b)
			h -= k.step
			l -= below(p.a, r^h)
			l = min(l, l+p.a)
		}
		if x = l*p.b + r; x < p.n {
			return x
		}
	}
}

// below hashes x into [0,n). The product's upper half is the reduction: no
// division, and a bias under n/2^64.
func below(n, x uint64) uint64 {
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 32
	x *= 0x94d049bb133111eb
	high, _ := bits.Mul64(x, n)
	return high
}

// Each use of (seed, epoch) has a label of its own, so that no two
// permutations of one epoch share a key.
const (
	labelFull = iota
	labelBlocks
	labelWindows
	labelRotation
)

// A key makes one permutation differ from another: round i hashes with
// first + i*step.
type key struct{ first, step uint64 }

// keyOf spreads seed and epoch over both words, each by a chain of its own:
// neither their sum nor their order is lost, and equal keys need two
// coincidences of 64 bits.
func keyOf(seed, epoch uint64) key {
	return key{
		first: mix(mix(seed+0x243f6a8885a308d3) + epoch),
		step:  mix(mix(seed+0x13198a2e03707344)+epoch) | 1,
	}
}

// of returns the i-th key derived from k.
func (k key) of(i uint64) key {
	return key{mix(k.first + i*k.step), mix(k.step+i*k.first) | 1}
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
