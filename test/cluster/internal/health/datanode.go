package health

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rankfs/test/cluster/internal/site"
)

// An actor is a datanode's account of one namenode.
type actor struct {
	NamenodeAddress string
	ActorState      string
	NamenodeHaState string
	LastHeartbeat   string // seconds ago
}

// dataNode says what is not as it should be between a datanode and the
// namenodes: these count on one that was killed until it is missed, and on one
// that was started again before it has reported.
func dataNode(ctx context.Context, dial Dialer, h site.Host, names []site.Host) error {
	info, err := tell(ctx, dial, h)
	if err != nil {
		return err
	}
	var actors []actor
	if err := json.Unmarshal([]byte(info.BPServiceActorInfo), &actors); err != nil {
		return fmt.Errorf("read the state of datanode %s: %w", h.Name, err)
	}
	for i, name := range names {
		if !slices.ContainsFunc(actors, func(a actor) bool { return a.serves(name.Name, i == 0) }) {
			return fmt.Errorf("namenode %s did not hear from it: %+v", name.Name, actors)
		}
	}
	return nil
}

// Volumes are the directories in which a datanode has its blocks now.
func Volumes(ctx context.Context, dial Dialer, h site.Host) ([]string, error) {
	info, err := tell(ctx, dial, h)
	if err != nil {
		return nil, err
	}
	var volumes map[string]struct{}
	if err := json.Unmarshal([]byte(info.VolumeInfo), &volumes); err != nil {
		return nil, fmt.Errorf("read the volumes of datanode %s: %w", h.Name, err)
	}
	return slices.Sorted(maps.Keys(volumes)), nil
}

// A nodeInfo is a datanode's account of itself, each field JSON again.
type nodeInfo struct{ BPServiceActorInfo, VolumeInfo string }

func tell(ctx context.Context, dial Dialer, h site.Host) (nodeInfo, error) {
	var info struct{ Beans []nodeInfo }
	address := fmt.Sprintf("%s:%d", h.IP, site.DataHTTP)
	if err := query(ctx, dial, address, "Hadoop:service=DataNode,name=DataNodeInfo", &info); err != nil {
		return nodeInfo{}, err
	}
	if len(info.Beans) != 1 {
		return nodeInfo{}, fmt.Errorf("datanode %s is still starting", h.Name)
	}
	return info.Beans[0], nil
}

// serves says whether it and a namenode heard from each other just now, and
// agree on which namenode is active.
func (a actor) serves(name string, active bool) bool {
	host, _, _ := strings.Cut(a.NamenodeAddress, ":")
	ago, err := strconv.Atoi(a.LastHeartbeat)
	return host == name && a.ActorState == "RUNNING" && err == nil && ago <= site.Heartbeat+1 &&
		(a.NamenodeHaState == "active") == active
}
