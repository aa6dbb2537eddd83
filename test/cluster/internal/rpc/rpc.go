package rpc

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"rankfs/test/cluster/internal/health"
)

// A Daemon is where a namenode, or a datanode, takes calls.
type Daemon struct {
	Dial    health.Dialer
	Address string // HOST:PORT
}

// What is called.
const (
	highAvailability = "org.apache.hadoop.ha.HAServiceProtocol"
	clients          = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
	dataNodes        = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol"
)

// Active has a namenode serve; the other one does not, or is dead.
func (d Daemon) Active(ctx context.Context) error { return d.transition(ctx, "transitionToActive") }

// Standby has a namenode serve no longer.
func (d Daemon) Standby(ctx context.Context) error { return d.transition(ctx, "transitionToStandby") }

func (d Daemon) transition(ctx context.Context, to string) error {
	user := message(nil).number(1, 0) // not a failover controller
	return d.call(ctx, highAvailability, to, message(nil).bytes(1, user))
}

// SafeMode turns the safe mode of a namenode on or off.
func (d Daemon) SafeMode(ctx context.Context, on bool) error {
	const leave, enter = 1, 2
	action := uint64(leave)
	if on {
		action = enter
	}
	return d.call(ctx, clients, "setSafeMode", message(nil).number(1, action))
}

// ReportBlocks has a datanode tell the namenodes of all its blocks.
func (d Daemon) ReportBlocks(ctx context.Context) error {
	return d.call(ctx, dataNodes, "triggerBlockReport", message(nil).number(1, 0))
}

// callTime bounds a call: one that becomes active goes through all that the other one
// has done.
const callTime = 2 * time.Minute

func (d Daemon) call(ctx context.Context, protocol, method string, request message) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	conn, err := d.Dial(ctx, "tcp", d.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := make([]byte, 16)
	rand.Read(client)
	if err := call(ctx, conn, client, protocol, method, request); err != nil {
		return fmt.Errorf("have %s do %s: %w", d.Address, method, err)
	}
	return nil
}
