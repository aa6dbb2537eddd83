package order_test

import (
	"fmt"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

func BenchmarkAt(b *testing.B) {
	for _, kind := range []string{"none", "window:1000", "window:100000", "full"} {
		for _, n := range []uint64{1e6, 1e12} {
			b.Run(fmt.Sprintf("%s/n=%.0e", kind, float64(n)), func(b *testing.B) {
				o := order.New(parse(b, kind), n, 1, 2)
				var i, sum uint64
				for b.Loop() {
					sum += o.At(i)
					if i++; i == n {
						i = 0
					}
				}
				sink = sum
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		o := order.New(meta.Order{Kind: meta.OrderWindow, Window: 1000}, 1e6, 1, 2)
		sink = o.At(0)
	}
}

var sink uint64

func parse(t testing.TB, s string) meta.Order {
	t.Helper()
	o, err := meta.ParseOrder(s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
