package namenode

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// The types below are Hadoop's messages in WebHDFS's JSON, with its field names.

// A webBool is true or "true".
type webBool bool

func (b *webBool) UnmarshalJSON(text []byte) error {
	*b = strings.Trim(string(text), `"`) == "true"
	return nil
}

// A webStatus is HdfsFileStatusProto as WebHDFS writes it.
type webStatus struct {
	Type             string
	PathSuffix       string
	Symlink          string
	Owner, Group     string
	Permission       string // in octal digits
	Length           uint64
	BlockSize        uint64
	ModificationTime uint64
	AccessTime       uint64
	FileID           uint64
	Replication      uint32
	EncBit, ECBit    bool
	ECPolicy         string
}

var webTypes = map[string]protoreflect.EnumNumber{"DIRECTORY": isDir, "FILE": 2, "SYMLINK": isLink}

func (s *webStatus) message() (proto.Message, error) {
	perm, err := strconv.ParseUint(s.Permission, 8, 16)
	kind := webTypes[s.Type]
	if err != nil || kind == 0 {
		return nil, fmt.Errorf("status of %q in the reply %w: type %q, permission %q", clean(s.PathSuffix), meta.ErrCorrupt, clean(s.Type), clean(s.Permission))
	}
	m := message.New("hdfs.HdfsFileStatusProto", message.Fields{
		"fileType": kind, "path": []byte(s.PathSuffix), "length": s.Length,
		"permission": message.New("hdfs.FsPermissionProto", message.Fields{"perm": uint32(perm)}),
		"owner":      s.Owner, "group": s.Group, "modification_time": s.ModificationTime, "access_time": s.AccessTime,
		"symlink": []byte(s.Symlink), "block_replication": s.Replication, "blocksize": s.BlockSize, "fileId": s.FileID,
	})
	if s.EncBit {
		message.Set(m, "flags", uint32(hasCrypt))
	}
	if s.ECBit {
		message.Set(m, "ecPolicy", message.New("hdfs.ErasureCodingPolicyProto", message.Fields{"id": uint32(0), "name": s.ECPolicy}))
	}
	return m, nil
}

// webListing is DirectoryListingProto.
type webListing struct {
	DirectoryListing struct {
		PartialListing struct {
			FileStatuses struct{ FileStatus []webStatus }
		}
		RemainingEntries uint32
	}
}

func (l *webListing) entries() []webStatus {
	return l.DirectoryListing.PartialListing.FileStatuses.FileStatus
}

// cut leaves the entries after the first n to the next page.
func (l *webListing) cut(n int) {
	all := l.entries()
	if len(all) > n {
		l.DirectoryListing.RemainingEntries += uint32(len(all) - n)
		l.DirectoryListing.PartialListing.FileStatuses.FileStatus = all[:n]
	}
}

// message returns the entries of the list, too.
func (l *webListing) message() (list proto.Message, entries []proto.Message, err error) {
	for _, st := range l.entries() {
		m, err := st.message()
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, m)
	}
	list = message.New("hdfs.DirectoryListingProto", message.Fields{"remainingEntries": l.DirectoryListing.RemainingEntries})
	message.Add(list, "partialListing", entries)
	return list, entries, nil
}

// webBlocks is LocatedBlocksProto.
type webBlocks struct {
	FileLength          uint64
	IsUnderConstruction bool
	IsLastBlockComplete bool
	LocatedBlocks       []webBlock
}

type webBlock struct {
	StartOffset uint64
	IsCorrupt   bool
	BlockToken  struct{ URLString string }
	Block       struct {
		BlockPoolID     string
		BlockID         int64 // below zero in erasure-coded files
		GenerationStamp uint64
		NumBytes        uint64
	}
	Locations []webDatanode
}

type webDatanode struct {
	IPAddr          string
	HostName        string
	StorageID       string // the datanode's, in spite of its name
	XferPort        uint32
	InfoPort        uint32
	InfoSecurePort  uint32
	IPCPort         uint32
	NetworkLocation string
}

// end is where the blocks end, or 0.
func (b *webBlocks) end() uint64 {
	if len(b.LocatedBlocks) == 0 {
		return 0
	}
	last := b.LocatedBlocks[len(b.LocatedBlocks)-1]
	return last.StartOffset + last.Block.NumBytes
}

func (b *webBlocks) message() (proto.Message, error) {
	blocks := make([]proto.Message, len(b.LocatedBlocks))
	for i := range blocks {
		var err error
		if blocks[i], err = b.LocatedBlocks[i].message(); err != nil {
			return nil, err
		}
	}
	m := message.New("hdfs.LocatedBlocksProto", message.Fields{
		"fileLength": b.FileLength, "underConstruction": b.IsUnderConstruction, "isLastBlockComplete": b.IsLastBlockComplete,
	})
	message.Add(m, "blocks", blocks)
	return m, nil
}

func (b *webBlock) message() (proto.Message, error) {
	token, err := tokenOf(b.BlockToken.URLString)
	if err != nil {
		return nil, err
	}
	m := message.New("hdfs.LocatedBlockProto", message.Fields{
		"b": message.New("hdfs.ExtendedBlockProto", message.Fields{
			"poolId": b.Block.BlockPoolID, "blockId": uint64(b.Block.BlockID),
			"generationStamp": b.Block.GenerationStamp, "numBytes": b.Block.NumBytes,
		}),
		"offset": b.StartOffset, "corrupt": b.IsCorrupt, "blockToken": token,
	})
	at := make([]proto.Message, len(b.Locations))
	for i, d := range b.Locations {
		at[i] = message.New("hdfs.DatanodeInfoProto", message.Fields{
			"id": message.New("hdfs.DatanodeIDProto", message.Fields{
				"ipAddr": d.IPAddr, "hostName": d.HostName, "datanodeUuid": d.StorageID, "xferPort": d.XferPort,
				"infoPort": d.InfoPort, "infoSecurePort": d.InfoSecurePort, "ipcPort": d.IPCPort,
			}),
			"location": d.NetworkLocation,
		})
	}
	message.Add(m, "locs", at)
	return m, nil
}

// tokenOf is a token that Hadoop wrote as text: identifier, password, kind and
// service, each behind its length.
func tokenOf(text string) (proto.Message, error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	var parts [4][]byte
	for i := range parts {
		if err == nil {
			parts[i], b, err = shiftWritable(b)
		}
	}
	if err != nil || len(b) > 0 {
		return nil, fmt.Errorf("token of a block in the reply %w", meta.ErrCorrupt)
	}
	return message.New("common.TokenProto", message.Fields{
		"identifier": parts[0], "password": parts[1], "kind": string(parts[2]), "service": string(parts[3]),
	}), nil
}

// shiftWritable takes bytes behind their length off, which is a byte up to 127
// and else, big end first, as many bytes as the first one is below -112.
func shiftWritable(b []byte) (value, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, meta.ErrCorrupt
	}
	n, b := int64(int8(b[0])), b[1:]
	if n < -112 {
		width := -112 - n
		if width > 4 || int64(len(b)) < width {
			return nil, nil, meta.ErrCorrupt
		}
		n = 0
		for _, digit := range b[:width] {
			n = n<<8 | int64(digit)
		}
		b = b[width:]
	}
	if n < 0 || n > int64(len(b)) {
		return nil, nil, meta.ErrCorrupt
	}
	return b[:n], b[n:], nil
}
