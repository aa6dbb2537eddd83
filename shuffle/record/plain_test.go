package record_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/shuffle/record"
)

// Whatever the spec and the maps: the parts are what a plain sort of all records makes, that
// knows nothing of runs and prefixes.
func TestPartsAreThoseOfAPlainSort(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		text := randomSpec(r)
		t.Run(fmt.Sprintf("seed=%d %s", seed, text), func(t *testing.T) {
			s, parts := specOf(t, text), 1+r.IntN(4)
			var maps []string
			var all [][]string
			for range 1 + r.IntN(5) {
				m, records := randomMap(r, s)
				maps, all = append(maps, m), append(all, records)
			}
			got := partsOf(t, s, parts, maps...)
			for p, want := range plain(s, parts, all) {
				if got[p] != want {
					t.Errorf("part %d of %q is\n%q, want\n%q", p, maps, got[p], want)
				}
			}
		})
	}
}

func randomSpec(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	if r.IntN(2) == 0 {
		return "record=line key=1 sort=" + pick("key", "key:number") + " combine=" + pick("sum", "min", "max", "count", "first") + pick("", " sep=,")
	}
	kind := pick("line", "sizes", "fixed:5")
	sort := pick("none", "key")
	if kind == "line" {
		sort = pick("none", "key", "key:number")
	}
	key := pick("0", "1", "2", "1-2", "2-9")
	if sort == "key:number" {
		key = "1"
	}
	combine := pick("none", "first")
	if combine == "first" && sort == "none" {
		sort = "key"
	}
	return "record=" + kind + " key=" + key + " sort=" + sort + " combine=" + combine
}

// randomMap is a map, and its records without what ends them. Some are in order.
func randomMap(r *rand.Rand, s record.Spec) (m string, records []string) {
	for range []int{0, 1, 2, 40}[r.IntN(4)] {
		payload := strings.Join([]string{randomNumber(r), strconv.Itoa(r.IntN(41) - 20), "rest"}, string([]byte{s.Sep}))
		if s.Combine == meta.NotCombined && s.Order != meta.ByNumber {
			payload = payload[:r.IntN(len(payload)+1)] + string(make([]byte, r.IntN(2)))
		}
		if s.Kind == meta.Fixed {
			payload = (payload + "\x00\x00\x00\x00\x00")[:s.Size]
		}
		records = append(records, payload)
	}
	if r.IntN(3) == 0 {
		slices.SortStableFunc(records, func(a, b string) int { return plainOrder(s, plainKey(s, a), plainKey(s, b)) })
	}
	var b []byte
	for _, payload := range records {
		switch s.Kind {
		case meta.Lines:
			b = append(append(b, payload...), '\n')
		case meta.Sized:
			b = append(binary.LittleEndian.AppendUint32(b, uint32(len(payload))), payload...)
		case meta.Fixed:
			b = append(b, payload...)
		}
	}
	if s.Kind == meta.Lines && r.IntN(2) == 0 && len(records) > 0 && records[len(records)-1] != "" {
		b = b[:len(b)-1] // a last line without its newline
	}
	return string(b), records
}

// randomNumber is one of few, so that keys are equal, in several spellings.
func randomNumber(r *rand.Rand) string {
	sign := []string{"", "-", "+", "0"}[r.IntN(4)]
	if r.IntN(4) == 0 {
		return strings.TrimSuffix(sign, "0") + strings.Repeat("9", 13+r.IntN(4)) + []string{"", ".1", ".10", ".09"}[r.IntN(4)]
	}
	return sign + strconv.Itoa(r.IntN(12)) + []string{"", ".5", ".50", "."}[r.IntN(4)]
}

// plain is what the parts of maps are, by their records.
func plain(s record.Spec, parts int, maps [][]string) []string {
	type one struct{ key, payload string }
	of := make([][]one, parts)
	for _, m := range maps {
		for _, payload := range m {
			key := plainKey(s, payload)
			p := xxhash.Sum64String(key) % uint64(parts)
			of[p] = append(of[p], one{key, payload})
		}
	}
	all := make([]string, parts)
	for p, records := range of {
		var b strings.Builder
		if s.Order != meta.AsWritten {
			slices.SortStableFunc(records, func(a, b one) int { return plainOrder(s, a.key, b.key) })
		}
		for len(records) > 0 {
			n := 1
			for s.Combine != meta.NotCombined && n < len(records) && records[n].key == records[0].key {
				n++
			}
			var payloads []string
			for _, one := range records[:n] {
				payloads = append(payloads, one.payload)
			}
			b.WriteString(plainRecord(s, records[0].key, payloads))
			records = records[n:]
		}
		all[p] = b.String()
	}
	return all
}

func plainOrder(s record.Spec, a, b string) int {
	if s.Order != meta.ByNumber {
		return cmp.Compare(a, b)
	}
	x, _ := new(big.Rat).SetString(strings.TrimSuffix(a, "."))
	y, _ := new(big.Rat).SetString(strings.TrimSuffix(b, "."))
	return cmp.Or(x.Cmp(y), cmp.Compare(a, b))
}

func plainKey(s record.Spec, payload string) string {
	if s.Key.From > 0 {
		return string(slices.Collect(func(yield func(byte) bool) {
			for i, b := range []byte(payload) {
				if i+1 >= int(s.Key.From) && i+1 <= int(s.Key.To) && !yield(b) {
					return
				}
			}
		}))
	}
	if s.Key.Field == 0 {
		return payload
	}
	if fields := strings.Split(payload, string([]byte{s.Sep})); int(s.Key.Field) <= len(fields) {
		return fields[s.Key.Field-1]
	}
	return ""
}

func plainRecord(s record.Spec, key string, payloads []string) string {
	text := payloads[0]
	if s.Combine != meta.NotCombined && s.Combine != meta.First {
		var values []int
		sum := 0
		for _, payload := range payloads {
			v, _ := strconv.Atoi(strings.Split(payload, string([]byte{s.Sep}))[1])
			values = append(values, v)
			sum += v
		}
		text = key + string([]byte{s.Sep}) + strconv.Itoa(map[meta.Combining]int{
			meta.Sum: sum, meta.Least: slices.Min(values), meta.Greatest: slices.Max(values), meta.Count: len(values),
		}[s.Combine])
	}
	switch s.Kind {
	case meta.Lines:
		return text + "\n"
	case meta.Sized:
		return string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text
	}
	return text
}
