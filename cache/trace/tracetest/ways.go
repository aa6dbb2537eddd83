// Package tracetest has orders in which programs read, for tests of what is learnt of them.
package tracetest

import "math/rand/v2"

// Ways are orders in which programs read a view of so many steps, over and over.
var Ways = map[string]func(steps uint64, passes int) []uint64{
	"strided": func(steps uint64, passes int) (opened []uint64) {
		for range passes {
			opened = append(opened, Strided(steps, 7)...)
		}
		return opened
	},
	"there and back": func(steps uint64, passes int) (opened []uint64) {
		for pass := range passes {
			for s := range steps {
				if pass%2 == 1 {
					s = steps - 1 - s
				}
				opened = append(opened, s)
			}
		}
		return opened
	},
	"scattered": func(steps uint64, passes int) (opened []uint64) {
		order := rand.New(rand.NewPCG(5, steps)).Perm(int(steps))
		for range passes {
			for _, s := range order {
				opened = append(opened, uint64(s))
			}
		}
		return opened
	},
	"all once, then a quarter": func(steps uint64, passes int) (opened []uint64) {
		opened = Strided(steps, 3)
		for range 4 * passes {
			opened = append(opened, Strided(steps/4, 3)...)
		}
		return opened
	},
	"three quarters once, then the rest": func(steps uint64, passes int) (opened []uint64) {
		for _, s := range Strided(steps, 3) {
			opened = append(opened, steps-1-s)
		}
		for range 4 * passes {
			opened = append(opened, Strided(steps/4, 3)...)
		}
		return opened
	},
}

// Strided is an epoch of so many steps in strides, from each of the first steps on.
func Strided(steps, stride uint64) (opened []uint64) {
	for first := range stride {
		for s := first; s < steps; s += stride {
			opened = append(opened, s)
		}
	}
	return opened
}
