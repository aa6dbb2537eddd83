package control

// A Tier is a place where slabs live. Bytes are real ones, with those of
// slabs that are deleted but still mapped by a rank.
type Tier struct {
	Name   string `json:"name"` // "ram", "nvme"
	Where  string `json:"where"`
	Budget int64  `json:"budget"`
	Used   int64  `json:"used"`
	Dying  int64  `json:"dying"`            // part of Used: discarded, but a rank still maps it
	Copies int64  `json:"copies,omitempty"` // part of Used: of source files, on nvme
	Slabs  int    `json:"slabs"`
	State  string `json:"state"`           // "ok", or what is wrong
	Empty  string `json:"empty,omitempty"` // why nothing is in it, though nothing is wrong

	Damaged uint64 `json:"damaged,omitempty"` // slabs that did not match their checksum, and were not served
	Lost    uint64 `json:"lost,omitempty"`    // slabs whose file was removed by something else
	Failed  uint64 `json:"failed,omitempty"`  // slabs that the disk could not read
}
