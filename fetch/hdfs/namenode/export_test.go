package namenode

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"rankfs/fetch/hdfs/message"

	"github.com/jcmturner/gokrb5/v8/types"
	"google.golang.org/protobuf/proto"
)

// DecodeListing takes a reply apart as a connection and List do.
func DecodeListing(r io.Reader) (entries []Status, left uint64, err error) {
	b, err := readFrame(r, maxFrame)
	if err != nil {
		return nil, 0, err
	}
	_, answer, err := parseReply(b)
	if err == nil {
		err = answer.err
	}
	if err != nil {
		return nil, 0, err
	}
	resp := message.New("hdfs.GetListingResponseProto", nil)
	if _, err := shift(answer.body, resp); err != nil || message.Part(resp, "dirList") == nil {
		return nil, 0, err
	}
	p := pageOf(message.Part(resp, "dirList"))
	l := listing{client: new(Client), located: true}
	return entries, p.left, l.tell(context.Background(), p, func(st Status) error {
		entries = append(entries, st)
		return nil
	})
}

// DecodeWebListing takes a reply of WebHDFS apart, in which each file is where
// blocks says.
func DecodeWebListing(list, blocks []byte) (entries []Status, err error) {
	var told webListing
	var where webBlocks
	if err := errors.Join(json.Unmarshal(list, &told), json.Unmarshal(blocks, &where)); err != nil {
		return nil, err
	}
	located, err := where.message()
	if err != nil {
		return nil, err
	}
	resp, statuses, err := told.message()
	if err != nil {
		return nil, err
	}
	for _, st := range statuses {
		message.Set(st, "locations", located)
	}
	b, err := proto.Marshal(resp)
	if err != nil {
		return nil, err
	}
	again := message.New("hdfs.DirectoryListingProto", nil)
	if err := proto.Unmarshal(b, again); err != nil {
		return nil, err
	}
	l := listing{client: new(Client), located: true}
	return entries, l.tell(context.Background(), pageOf(again), func(st Status) error {
		entries = append(entries, st)
		return nil
	})
}

// TicketEnd is when the credential cache's ticket ends.
func (c *Client) TicketEnd() time.Time {
	return time.Now().Add(c.user.tickets.left()).Round(time.Second)
}

// Renew does what is done before the ticket ends.
func (c *Client) Renew() error { return c.user.tickets.renew() }

// Disconnect ends the connections that there are.
func (c *Client) Disconnect() {
	c.mu.Lock()
	conns := c.mu.conns
	c.mu.Unlock()
	for _, cn := range conns {
		cn.end(errIdle)
	}
}

// A Seal is what guards packets.
type Seal struct{ *seal }

func NewSeal(key types.EncryptionKey) (Seal, error) {
	s, err := newSeal(key, 1)
	return Seal{s}, err
}

func (s Seal) Out(message []byte, secret bool) ([]byte, error) { return s.out(message, secret) }
func (s Seal) In(token []byte, secret bool) ([]byte, error)    { return s.in(token, secret) }
