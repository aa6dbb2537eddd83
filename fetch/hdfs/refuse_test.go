package hdfs_test

import (
	"errors"
	"strings"
	"testing"

	"rankfs/fetch/hdfs"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// Bytes that are not those of the file as its readers know it are not served.
func TestRefuse(t *testing.T) {
	for _, test := range []struct {
		name  string
		st    namenode.Status
		is    error // nil: it is served
		words string
	}{
		{"plain", namenode.Status{}, nil, ""},
		{"in an encryption zone", namenode.Status{Encrypted: true}, meta.ErrInvalid,
			`file "/f" is not valid: it is in an encryption zone, whose keys rankfs does not ask for; copy it out of the zone`},
		{"erasure-coded", namenode.Status{ErasureCode: "RS-6-3-1024k"}, meta.ErrInvalid,
			`file "/f" is not valid: it is erasure-coded (RS-6-3-1024k), which the HDFS library cannot read; copy it to a directory with replication`},
		{"both", namenode.Status{Encrypted: true, ErasureCode: "RS-6-3-1024k"}, meta.ErrInvalid, "erasure-coded"},
		{"being written", namenode.Status{Blocks: &namenode.Blocks{Open: true}}, meta.ErrBusy, "a program is writing to it; try again when it is closed"},
		{"being written in a zone", namenode.Status{Encrypted: true, Blocks: &namenode.Blocks{Open: true}}, meta.ErrInvalid, "zone"},
		{"closed", namenode.Status{Blocks: &namenode.Blocks{}}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := hdfs.Refuse("/f", test.st)
			if !errors.Is(err, test.is) || err != nil && !strings.Contains(err.Error(), test.words) {
				t.Errorf("refused with %v", err)
			}
		})
	}
}
