// Package health asks a namenode over HTTP how it is.
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

// A State is what a namenode says of itself and its datanodes.
type State struct {
	Active  bool // it is the one that serves
	Safe    bool // it is in safe mode
	Live    int  // datanodes
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
		NumLive       int `json:"NumLiveDataNodes"`
		MissingBlocks int
		CorruptBlocks int

		BPServiceActorInfo string // how a datanode gets on with each namenode
	} `json:"beans"`
}

const maxAnswer = 1 << 20

// Ask asks the namenode at an address, and waits for two seconds at most: its
// process may be stopped.
func Ask(ctx context.Context, dial Dialer, address string) (State, error) {
	b, err := get(ctx, dial, address, "Hadoop:service=NameNode,name=*")
	if err != nil {
		return State{}, fmt.Errorf("read the state of namenode %s: %w", address, err)
	}
	return b.state(address)
}

// askData asks a datanode how many namenodes know it.
func askData(ctx context.Context, dial Dialer, address string) (known int, err error) {
	b, err := get(ctx, dial, address, "Hadoop:service=DataNode,name=DataNodeInfo")
	if err != nil {
		return 0, fmt.Errorf("read the state of datanode %s: %w", address, err)
	}
	for _, bean := range b.Beans {
		known += strings.Count(bean.BPServiceActorInfo, `"RUNNING"`)
	}
	return known, nil
}

// get asks a daemon for some beans.
func get(ctx context.Context, dial Dialer, address, query string) (b beans, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/jmx?qry=%s", address, query), nil)
	if err != nil {
		return b, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return b, err
	}
	defer answer.Body.Close()
	return b, json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&b)
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
			s.Live = bean.NumLive
			seen++
		case "FSNamesystem":
			s.Missing, s.Corrupt = bean.MissingBlocks, bean.CorruptBlocks
			seen++
		}
	}
	if seen < 3 {
		return State{}, fmt.Errorf("namenode %s is still starting", address)
	}
	return s, nil
}
