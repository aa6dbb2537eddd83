package namenode_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// listingReply is a whole reply with a file of two blocks and a directory.
func listingReply() []byte {
	a := &asked{id: 1, method: "getListing"}
	return packed(a.header(0, "", ""), made("hdfs.GetListingResponseProto", set{"dirList": made("hdfs.DirectoryListingProto", set{
		"partialListing": []proto.Message{file("a", blockSize+5, located(blockSize+5, 0, blockSize+5)), directory("d")}, "remainingEntries": uint32(3),
	})}))
}

// FuzzReply: whatever a namenode sends, what comes of it is an error or makes
// sense, and takes memory by what was sent, not by what was announced.
func FuzzReply(f *testing.F) {
	good := listingReply()
	f.Add(good)
	f.Add(good[:len(good)-1])
	a := &asked{id: 1, method: "getListing"}
	f.Add(packed(a.header(1, "java.io.IOException", "x")))
	f.Add(packed(a.header(2, "", "")))
	f.Add([]byte("\x07\xff\xff\xff\x05"))
	f.Add([]byte("HTTP/1.1 200 OK"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, _, err := namenode.DecodeListing(bytes.NewReader(b))
		if err == io.EOF && len(b) > 3 {
			t.Error("an end where something began")
		}
		for _, st := range entries {
			sensible(t, st)
		}
		if len(b) < 4 {
			return
		}
		if n := int(binary.BigEndian.Uint32(b)); n > len(b)-4 && err == nil {
			t.Errorf("%d bytes announced, %d there, and no error", n, len(b)-4)
		}
	})
}

// FuzzWebReply: the same holds of WebHDFS.
func FuzzWebReply(f *testing.F) {
	const block = `{"blockToken":{"urlString":"%s"},"isCorrupt":false,"startOffset":0,"block":{"blockPoolId":"BP-1","blockId":1,"generationStamp":1,"numBytes":7},` +
		`"locations":[{"ipAddr":"10.0.0.1","hostName":"dn1","storageID":"u","xferPort":9866,"infoPort":9864,"ipcPort":9867,"networkLocation":"/r"}]}`
	const list = `{"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[%s]}},"remainingEntries":3}}`
	for _, token := range []string{"AAAAAA", "BWlkZW50CHBhc3N3b3JkAWsBcw", "j_8BAQ", "iAECAwQFBgcI", "_"} {
		f.Add([]byte(fmt.Sprintf(list, webStatus(7))), []byte(`{"fileLength":7,"isLastBlockComplete":true,"locatedBlocks":[`+fmt.Sprintf(block, token)+`]}`))
	}
	f.Fuzz(func(t *testing.T, list, blocks []byte) {
		entries, err := namenode.DecodeWebListing(list, blocks)
		for _, st := range entries {
			sensible(t, st)
		}
		if err != nil && len(entries) > 0 && !errors.Is(err, meta.ErrCorrupt) {
			t.Error(err)
		}
	})
}

func sensible(t *testing.T, st namenode.Status) {
	if strings.ContainsAny(st.Name, "/\x00") || st.Name == ".." || st.Size < 0 {
		t.Errorf("status %+v", st)
	}
	if st.Blocks == nil {
		return
	}
	at := int64(0)
	for _, b := range st.Blocks.Blocks {
		if b.Off != at || b.Size <= 0 || b.Message == nil {
			t.Errorf("block %+v at %d", b, at)
		}
		at += b.Size
	}
	if st.Blocks.Size < 0 || at < min(st.Size, st.Blocks.Size) {
		t.Errorf("blocks up to %d of %d", at, st.Blocks.Size)
	}
}

// A length of 128 MiB takes no memory of that size while nothing comes.
func TestAnnouncedLength(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := namenode.DecodeListing(io.MultiReader(strings.NewReader("\x07\xff\xff\xff"), strings.NewReader(strings.Repeat("x", 1000))))
	runtime.ReadMemStats(&after)
	holds(t, err, []string{"ends after 1000"}, []error{io.ErrUnexpectedEOF})
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("took %d bytes", took)
	}
}
