package namenode

import (
	"context"
	"io"
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
	resp := message("hdfs.GetListingResponseProto", nil)
	if _, err := shift(answer.body, resp); err != nil || part(resp, "dirList") == nil {
		return nil, 0, err
	}
	p := pageOf(part(resp, "dirList"))
	l := listing{client: new(Client), located: true}
	return entries, p.left, l.tell(context.Background(), p, func(st Status) error {
		entries = append(entries, st)
		return nil
	})
}
