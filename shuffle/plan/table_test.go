package plan_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/plan"
	"rankfs/shuffle/plan/plantest"
)

// A table is an index of chunks that have as many records each, of ten bytes.
type table struct {
	plantest.Scene
	records uint64 // of each chunk
}

func (x table) Fingerprint() string       { return "v1" }
func (x table) Records() uint64           { return x.records * uint64(len(x.Holders)) }
func (x table) Bytes() int64              { return 10 * int64(x.Records()) }
func (x table) ChunkOf(record uint64) int { return int(record / x.records) }

func (x table) ChunkRecords(chunk int) (first, n uint64) { return uint64(chunk) * x.records, x.records }

// version is that of chunks on the hosts of their number.
func version(records uint64, chunks ...[]string) *plan.Version {
	x := table{plantest.Scene{Holders: chunks}, records}
	return plan.NewVersion(x, sha256.Sum256(fmt.Append(nil, chunks)))
}

func viewOf(t testing.TB, options string) meta.View {
	t.Helper()
	v, err := meta.View{Dataset: "d", Ranks: 1}.With(options)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// on is a rank on each of some hosts, called by their letters.
func on(hosts string) (seats []plan.Seat) {
	for _, h := range hosts {
		seats = append(seats, plan.Seat{Host: string(h), Ranks: 1})
	}
	return seats
}

func mustPlace(t testing.TB, p *plan.Plan, seats []plan.Seat) {
	t.Helper()
	if err := p.Place(seats); err != nil {
		t.Fatal(err)
	}
}

// chunksOf are the chunks of a batch.
func chunksOf(t testing.TB, p *plan.Plan, rank, step uint64) []int {
	t.Helper()
	chunks, err := p.AppendChunks(nil, rank, step)
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}
