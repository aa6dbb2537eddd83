package datanode

import (
	"net"

	"rankfs/fetch/hdfs/namenode"
)

// Pick is the replica that would be asked.
func (c *Client) Pick(replicas []namenode.Replica) namenode.Replica {
	r, _ := c.pick(replicas, nil)
	return r
}

// Agree is what a stream does first, with a token's name and password.
func (g Guard) Agree(c net.Conn, name, password string) (net.Conn, error) {
	return g.agree(c, proof{name, password})
}

// At reports whether there is something to agree on with an address.
func (g Guard) At(addr string) bool { return len(g.at(addr).Allowed) > 0 }

// A Peer is the datanode's end of what was agreed on.
type Peer struct {
	digest *digest
	ours   *seal
}

// NewPeer takes the client's answer apart.
func NewPeer(name, password, quality string, response []byte) (Peer, error) {
	said, err := parseChallenge(string(response))
	d := &digest{proof{name, password}, said["realm"], said["nonce"], said["cnonce"], quality}
	return Peer{d, d.seal("server-to-client")}, err
}

// Shows is what shows that the peer knows the password.
func (p Peer) Shows() string { return "rspauth=" + p.digest.sum("") }

// Next is the peer's next message, sealed.
func (p Peer) Next(message []byte) []byte { return p.ours.out(nil, message) }
