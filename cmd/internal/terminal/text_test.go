package terminal

import (
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 10 << 10: "10 KiB", 1 << 20: "1.0 MiB",
		1<<20 - 1: "1.0 MiB", 5 << 29: "2.5 GiB", 1 << 62: "4.0 EiB", -1: "-1 B",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m 01s", 3600 * time.Second: "1h 00m", 49 * time.Hour: "2d 01h",
	} {
		if got := Span(d); got != want {
			t.Errorf("span(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	if got := Wrap("one two  three\nfour", 9, "  "); got != "one two\n  three\n  four" {
		t.Errorf("got %q", got)
	}
	if got := Wrap("averylongword x", 3, ""); got != "averylongword\nx" {
		t.Errorf("got %q", got)
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "0.0%", 0.5: "50.0%", 0.99999: "99.9%", 1: "100%"} {
		if got := Percent(share); got != want {
			t.Errorf("percent(%v) = %s, want %s", share, got, want)
		}
	}
}
