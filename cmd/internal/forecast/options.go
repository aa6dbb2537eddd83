package forecast

import (
	"fmt"
	"time"

	"rankfs/cache/policy"
	"rankfs/meta"
)

// Bounds on what is asked for. Nothing changes after a few epochs.
const (
	minRAM    = 16 << 20 // mount refuses less
	maxEpochs = 1000
	maxStep   = 24 * time.Hour
)

// Options describe the epochs to simulate. A field left empty is as mounted, as
// measured, or assumed.
type Options struct {
	RAM, NVMe, Bytes      string // sizes
	Bandwidth, Link, Disk string // rates
	Nodes                 int
	Ranks                 uint64
	Step                  time.Duration
	Epochs                int
	Packed                float64
	Policy                string // its name, or all
}

// Policies are the names of the policies to try.
func (a *Options) Policies() ([]string, error) {
	if a.Policy == "all" {
		return policy.Names(), nil
	}
	_, err := policy.New(a.Policy)
	return []string{a.Policy}, err
}

// Job reads sizes and rates, and checks their bounds.
func (a *Options) Job() (*Job, error) {
	j := &Job{nodes: a.Nodes, ranks: a.Ranks, epochs: a.Epochs, step: a.Step.Seconds(), packed: a.Packed, ram: -1, nvme: -1}
	for _, v := range []struct {
		flag, text string
		to         *int64
	}{
		{"ram", a.RAM, &j.ram}, {"nvme", a.NVMe, &j.nvme},
		{"bytes", a.Bytes, &j.bytes}, {"bandwidth", a.Bandwidth, &j.bandwidth}, {"link", a.Link, &j.link}, {"disk", a.Disk, &j.disk},
	} {
		if v.text == "" {
			continue
		}
		n, err := meta.ParseBytes(trimRate(v.text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.flag, err)
		}
		if v.flag == "ram" && n < minRAM { // as mount says it
			return nil, meta.Worded(meta.ErrInvalid, "ram budget of %s is not valid: give %s or more", meta.FormatBytes(n), meta.FormatBytes(minRAM))
		}
		if *v.to = int64(n); n == 0 && v.flag != "nvme" {
			return nil, meta.Worded(meta.ErrInvalid, "%s %s is nothing", v.flag, v.text)
		}
	}
	switch {
	case a.Nodes < 0:
		return nil, meta.Worded(meta.ErrInvalid, "%d nodes: use 1 or more", a.Nodes)
	case a.Epochs < 1 || a.Epochs > maxEpochs:
		return nil, meta.Worded(meta.ErrInvalid, "%d epochs: use 1 to %d", a.Epochs, maxEpochs)
	case a.Step < 0 || a.Step > maxStep:
		return nil, meta.Worded(meta.ErrInvalid, "step %s is no time to work on a batch: use up to %s", meta.FormatTime(a.Step), meta.FormatTime(maxStep))
	case !(a.Packed >= 0 && a.Packed < 1):
		return nil, meta.Worded(meta.ErrInvalid, "packed %v is not a share from 0 to below 1", a.Packed)
	}
	return j, nil
}

// trimRate lets a rate be written as such.
func trimRate(s string) string {
	if n := len(s); n > 2 && s[n-2:] == "/s" {
		return s[:n-2]
	}
	return s
}
