package state

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"

	"rankfs/meta"
)

// Commits are the commits of some maps of a stage, in the order of the maps, none twice. In
// snapshots and in the log they are, in base 64,
//
//	how many nodes there are in them; the id of each (8 bytes)
//	for each map: how many numbers are left out before it; its attempt; its size; its sum
//	(8 bytes); which of the nodes has written it; how many have a copy; which; how many
//	bytes of a name follow; those
//
// numbers being varints, and those of 8 bytes little-endian. A map takes some 20 bytes.
type Commits []Commit

// MarshalText implements encoding.TextMarshaler.
func (c Commits) MarshalText() ([]byte, error) {
	var p packer
	p.commits(c)
	return p.text()
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Commits) UnmarshalText(text []byte) error {
	u, err := unpack(text)
	if err != nil {
		return err
	}
	*c = nil
	for next := uint64(0); len(u.b) > 0 && !u.bad; {
		one := u.commit(next)
		*c, next = append(*c, one), one.Map+1
	}
	return u.err()
}

// StageMaps are maps of one generation of a stage.
type StageMaps struct {
	Stage      uint64
	Generation uint64
	Maps       Commits
}

// MapsByStage are maps of several stages, in the order of these, none twice. In the log they
// are as Commits are, with the number of the stage, its generation and how many maps it has
// before those.
type MapsByStage []StageMaps

// Len is the number of maps.
func (b MapsByStage) Len() (n int) {
	for _, g := range b {
		n += len(g.Maps)
	}
	return n
}

// MarshalText implements encoding.TextMarshaler.
func (b MapsByStage) MarshalText() ([]byte, error) {
	var p packer
	for _, g := range b {
		p.numbers(g.Stage, g.Generation, uint64(len(g.Maps)))
		p.commits(g.Maps)
	}
	return p.text()
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *MapsByStage) UnmarshalText(text []byte) error {
	u, err := unpack(text)
	if err != nil {
		return err
	}
	*b = nil
	for len(u.b) > 0 && !u.bad {
		g := StageMaps{Stage: u.number(), Generation: u.number()}
		next := uint64(0)
		for n := u.number(); n > 0 && !u.bad; n-- {
			one := u.commit(next)
			g.Maps, next = append(g.Maps, one), one.Map+1
		}
		*b = append(*b, g)
	}
	return u.err()
}

// A packer writes commits, and numbers the nodes in them.
type packer struct {
	nodes []uint64
	known map[string]uint64
	maps  []byte
	err   error
}

// text has the packed bytes.
func (p *packer) text() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	b := binary.AppendUvarint(nil, uint64(len(p.nodes)))
	for _, id := range p.nodes {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	return base64.RawStdEncoding.AppendEncode(nil, append(b, p.maps...)), nil
}

func (p *packer) commits(c Commits) {
	next := uint64(0)
	for _, one := range c {
		if one.Map < next {
			p.err = fmt.Errorf("list of commits %w: map %d comes after map %d", meta.ErrInvalid, one.Map, next-1)
			return
		}
		p.numbers(one.Map-next, one.Attempt, uint64(one.Size))
		p.maps = binary.LittleEndian.AppendUint64(p.maps, one.Sum)
		p.node(one.Writer)
		p.numbers(uint64(len(one.Nodes)))
		for _, id := range one.Nodes {
			p.node(id)
		}
		p.numbers(uint64(len(one.Name)))
		p.maps = append(p.maps, one.Name...)
		next = one.Map + 1
	}
}

func (p *packer) numbers(all ...uint64) {
	for _, n := range all {
		p.maps = binary.AppendUvarint(p.maps, n)
	}
}

func (p *packer) node(id string) {
	number, ok := p.known[id]
	if !ok {
		n, err := strconv.ParseUint(id, 16, 64)
		if err != nil {
			p.err = err
		}
		if p.known == nil {
			p.known = make(map[string]uint64)
		}
		number = uint64(len(p.nodes))
		p.known[id] = number
		p.nodes = append(p.nodes, n)
	}
	p.numbers(number)
}

// An unpacker reads what a packer wrote, and anything else.
type unpacker struct {
	b     []byte
	nodes []string
	bad   bool
}

// unpack begins to read, with the nodes.
func unpack(text []byte) (*unpacker, error) {
	b, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil {
		return nil, fmt.Errorf("commits: %w", err)
	}
	u := &unpacker{b: b}
	for n := u.number(); n > 0 && !u.bad; n-- {
		u.nodes = append(u.nodes, idString(u.word()))
	}
	return u, nil
}

func (u *unpacker) err() error {
	if u.bad {
		return fmt.Errorf("list of commits %w", meta.ErrCorrupt)
	}
	return nil
}

// commit is the commit of a map whose number is next at least.
func (u *unpacker) commit(next uint64) Commit {
	c := Commit{Map: next + u.number(), Attempt: u.number(), Size: int64(u.number()), Sum: u.word(), Writer: u.node()}
	copies := u.number()
	u.bad = u.bad || c.Map < next || copies > meta.MaxCopies
	for ; copies > 0 && !u.bad; copies-- {
		c.Nodes = append(c.Nodes, u.node())
	}
	c.Name = u.text()
	return c
}

func (u *unpacker) number() uint64 {
	n, size := binary.Uvarint(u.b)
	if size <= 0 {
		u.bad = true
		return 0
	}
	u.b = u.b[size:]
	return n
}

func (u *unpacker) word() uint64 {
	if len(u.b) < 8 {
		u.bad = true
		return 0
	}
	n := binary.LittleEndian.Uint64(u.b)
	u.b = u.b[8:]
	return n
}

func (u *unpacker) node() string {
	n := u.number()
	if n >= uint64(len(u.nodes)) {
		u.bad = true
		return ""
	}
	return u.nodes[n]
}

func (u *unpacker) text() string {
	n := u.number()
	if n > uint64(len(u.b)) {
		u.bad = true
		return ""
	}
	s := string(u.b[:n])
	u.b = u.b[n:]
	return s
}

// A Committed is the result of one map of a CommitMaps.
type Committed struct {
	Commit *Commit    `json:",omitempty"` // the attempt that has won
	Error  *meta.Told `json:",omitempty"` // or why there is none
}
