package assign

import (
	"cmp"
	"fmt"
	"math/bits"
)

// A Ratio is Num/Den exactly, so that times compare alike on every machine.
// The zero value is not a number.
type Ratio struct{ Num, Den uint64 }

// ratio returns num/den in lowest terms.
func ratio(num, den uint64) Ratio {
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	return Ratio{num / a, den / a}
}

// Compare is below, equal to or above zero as r is below, equal to or above s.
func (r Ratio) Compare(s Ratio) int {
	high, low := bits.Mul64(r.Num, s.Den)
	high2, low2 := bits.Mul64(s.Num, r.Den)
	return cmp.Or(cmp.Compare(high, high2), cmp.Compare(low, low2))
}

func (r Ratio) String() string { return fmt.Sprintf("%d/%d", r.Num, r.Den) }
