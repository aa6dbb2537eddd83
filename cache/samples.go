package cache

// samples count the batches of a dataset that were taken to try codecs on.
type samples map[string]int

const (
	maxSamples = 3 // of a dataset: so many are measured whatever comes of it
	maxSampled = maxChoosers
)

// take counts one more of a dataset, unless that has had enough.
func (s samples) take(dataset string) bool {
	if s[dataset] == 0 && len(s) >= maxSampled {
		clear(s)
	}
	if s[dataset] >= maxSamples {
		return false
	}
	s[dataset]++
	return true
}
