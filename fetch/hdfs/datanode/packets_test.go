package datanode_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"rankfs/fetch/hdfs/datanode"
)

// A sender is a datanode with a block, of which it has checksums that are those
// of what it should be.
type sender struct {
	content, should []byte
	kind            uint64 // of checksums
	per, most       int    // bytes of one, and how many are in a packet
}

// dial connects to one who answers one request.
func (s sender) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		const versionAndKind, fieldOffset = 3, 2
		request, err := hear(theirs, versionAndKind)
		for err == nil {
			number, kind, n := protowire.ConsumeTag(request)
			if number == fieldOffset {
				from, _ := protowire.ConsumeVarint(request[n:])
				theirs.Write(s.send(int(from) / s.per * s.per))
				return
			}
			request = request[n+protowire.ConsumeFieldValue(number, kind, request[n:]):]
		}
	}()
	return ours, nil
}

// send is all from some byte on.
func (s sender) send(at int) []byte {
	table := map[uint64]*crc32.Table{1: crc32.IEEETable, crc32c: crc32.MakeTable(crc32.Castagnoli)}[s.kind]
	b := answerFrom(uint64(at), s.kind, uint64(s.per))
	for data := range slices.Chunk(s.content[at:], s.per*s.most) {
		pieces := (len(data) + s.per - 1) / s.per
		b = append(b, packetAt(uint64(at), int32(len(data)), int32(len(data)+4*pieces))...)
		for piece := range slices.Chunk(s.should[at:at+len(data)], s.per) {
			b = binary.BigEndian.AppendUint32(b, crc32.Checksum(piece, table))
		}
		b, at = append(b, data...), at+len(data)
	}
	return append(b, last(at)...)
}

// Whatever is asked for at a time, what comes is what was sent; and if one or
// several bytes of it are wrong, an error comes before any of them.
func TestPackets(t *testing.T) {
	block := located(t, "a")
	rapid.Check(t, func(t *rapid.T) {
		should := random(rapid.IntRange(1, 20_000).Draw(t, "size"))
		content := bytes.Clone(should)
		wrong := rapid.SliceOfNDistinct(rapid.IntRange(0, len(content)-1), 0, 3, rapid.ID).Draw(t, "wrong")
		for _, at := range wrong {
			content[at] ^= 1 << (at % 8)
		}
		from := sender{content, should, rapid.SampledFrom([]uint64{1, crc32c}).Draw(t, "kind"),
			rapid.SampledFrom([]int{64, 100, 512, 4096}).Draw(t, "per"), rapid.IntRange(1, 20).Draw(t, "most")}
		c := datanode.New(datanode.Config{User: "root", Dial: from.dial})
		block.Size = int64(len(content))
		s := c.Open(context.Background(), block, 0, block.Size)
		defer s.Close()
		got, err := readIn(s, rapid.SliceOfN(rapid.IntRange(1, 9000), 1, 8).Draw(t, "pieces"))
		if !bytes.Equal(got, should[:len(got)]) {
			t.Fatalf("other bytes than were sent, of %d", len(got))
		}
		if len(wrong) == 0 && (err != nil || len(got) != len(content)) {
			t.Fatalf("%d of %d bytes, and %v", len(got), len(content), err)
		}
		if len(wrong) > 0 && (!errors.Is(err, datanode.ErrNoReplica) || c.Snapshot().Corrupt != 1) {
			t.Fatalf("bytes %v are wrong, and %v", wrong, err)
		}
	})
}

// readIn reads all, in pieces of those sizes.
func readIn(s *datanode.Stream, sizes []int) (got []byte, err error) {
	for i := 0; ; i++ {
		b := make([]byte, sizes[i%len(sizes)])
		n, err := s.Read(b)
		got = append(got, b[:n]...)
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}
