package health

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A State is the state of a namenode and its datanodes, as it reports it.
type State struct {
	Active  bool // it is the one that serves
	Safe    bool // it is in safe mode
	Live    int  // datanodes that are of use: it knows what room they have
	Missing int  // blocks without a replica
	Corrupt int  // replicas known to be bad
}

// A Dialer makes connections from somewhere on the hosts' network.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// beans is the part of the answer that is used; each bean has some of it.
type beans struct {
	Beans []struct {
		Name          string `json:"name"`
		State         string
		FSState       string
		LiveNodes     string // JSON again
		MissingBlocks int
		CorruptBlocks int
	} `json:"beans"`
}

const maxAnswer = 1 << 20

// Ask returns what the namenode at an address says of its state.
func Ask(ctx context.Context, dial Dialer, address string) (State, error) {
	var b beans
	if err := query(ctx, dial, address, "Hadoop:service=NameNode,name=*", &b); err != nil {
		return State{}, err
	}
	return b.state(address)
}

// query has a daemon tell about itself, and waits for ten seconds at most: its process
// may be stopped. One that is starting on a busy machine may need most of them.
func query(ctx context.Context, dial Dialer, address, beans string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/jmx?qry="+beans, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("read the state of %s: %w", address, err)
	}
	return nil
}

func (b *beans) state(address string) (State, error) {
	var s State
	var seen int
	for _, bean := range b.Beans {
		switch _, name, _ := strings.Cut(bean.Name, "name="); name {
		case "NameNodeStatus":
			s.Active = bean.State == "active"
			seen++
		case "FSNamesystemState":
			s.Safe = bean.FSState != "Operational"
			seen++
		case "NameNodeInfo":
			live, err := countLive(bean.LiveNodes)
			if err != nil {
				return State{}, fmt.Errorf("read the datanodes of namenode %s: %w", address, err)
			}
			s.Live = live
			seen++
		case "FSNamesystem":
			s.Missing, s.Corrupt = bean.MissingBlocks, bean.CorruptBlocks
			seen++
		}
	}
	if seen < 4 {
		return State{}, fmt.Errorf("namenode %s is still starting", address)
	}
	return s, nil
}

// A Room is what a namenode knows of that of a datanode, in bytes.
type Room struct{ Capacity, Remaining int64 }

// Rooms are those of the live datanodes, by HOST:PORT as the namenode at an address calls
// them.
func Rooms(ctx context.Context, dial Dialer, address string) (map[string]Room, error) {
	var b beans
	if err := query(ctx, dial, address, "Hadoop:service=NameNode,name=NameNodeInfo", &b); err != nil {
		return nil, err
	}
	if len(b.Beans) != 1 {
		return nil, fmt.Errorf("namenode %s is still starting", address)
	}
	return rooms(b.Beans[0].LiveNodes)
}

func rooms(list string) (nodes map[string]Room, err error) {
	return nodes, json.Unmarshal([]byte(list), &nodes)
}

// countLive counts the nodes that have room. One that has just come back to a
// namenode has none, and gets no blocks, until its next heartbeat.
func countLive(list string) (int, error) {
	nodes, err := rooms(list)
	if err != nil {
		return 0, err
	}
	live := 0
	for _, n := range nodes {
		if n.Capacity > 0 {
			live++
		}
	}
	return live, nil
}
