package site

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"rankfs/test/hadoop"
)

// The daemons that a host may run.
const (
	NameNode = "namenode"
	DataNode = "datanode"
)

// A Host is one machine of the cluster.
type Host struct {
	Name    string
	IP      string
	Rack    string // that the namenode knows it by; none: the default
	Daemons []string
	Pid     int // of the process that holds its namespaces, as the machine outside counts
}

// A Site is a cluster as it was built, or as it is to be built.
type Site struct {
	Name  string
	Dir   string // all that the cluster keeps on disk; goes with it
	Home  hadoop.Home
	Lock  string // the file of locks, beside the jars: it must outlive Dir
	Hosts []Host
	Pid   int // of the keeper, which holds the switch between the hosts
}

// Plain is two namenodes that share their edits, three datanodes, and a host
// that has no block of any file.
func Plain() []Host {
	return number([]Host{
		{Name: "name1", Daemons: []string{NameNode}},
		{Name: "name2", Daemons: []string{NameNode}},
		{Name: "data1", Daemons: []string{DataNode}},
		{Name: "data2", Daemons: []string{DataNode}},
		{Name: "data3", Daemons: []string{DataNode}},
		{Name: "client"},
	})
}

// Wide is two namenodes and four datanodes, two in each of two racks.
func Wide() []Host {
	return number([]Host{
		{Name: "name1", Daemons: []string{NameNode}},
		{Name: "name2", Daemons: []string{NameNode}},
		{Name: "data1", Rack: "/row/rack1", Daemons: []string{DataNode}},
		{Name: "data2", Rack: "/row/rack1", Daemons: []string{DataNode}},
		{Name: "data3", Rack: "/row/rack2", Daemons: []string{DataNode}},
		{Name: "data4", Rack: "/row/rack2", Daemons: []string{DataNode}},
	})
}

// Bare is hosts and no HDFS: they are up within a second. The harness has one
// to itself, the scrap, to find out what is left of it.
func Bare() []Host {
	return number([]Host{{Name: "node1"}, {Name: "node2"}, {Name: "node3"}, {Name: "node4"}})
}

// Five is one host more than Bare.
func Five() []Host { return number(append(Bare(), Host{Name: "node5"})) }

// Bridge is the address of the keeper itself on the hosts' network.
const Bridge = "10.77.0.1"

func number(hosts []Host) []Host {
	for i := range hosts {
		hosts[i].IP = fmt.Sprintf("10.77.0.%d", 11+i)
	}
	return hosts
}

// variants are the clusters that there are, by name.
var variants = map[string]func() []Host{
	"plain": Plain, "mounts": Plain,
	"wide": Wide, "plans": Wide,
	"bare1": Bare, "bare2": Bare, "bare3": Bare, "scrap": Bare,
	"five": Five,
}

// New describes the cluster of that name which belongs to a checkout: another
// checkout has another, for its harness may be another.
func New(name string, home hadoop.Home) (*Site, error) {
	hosts, known := variants[name]
	if !known {
		return nil, fmt.Errorf("no cluster %q: there are %q", name, slices.Sorted(maps.Keys(variants)))
	}
	sum := sha256.Sum256([]byte(home))
	return &Site{
		Name:  name,
		Dir:   fmt.Sprintf("/var/tmp/rankfs-%s-%x", name, sum[:4]),
		Home:  home,
		Lock:  filepath.Join(string(home), name+".lock"),
		Hosts: hosts(),
	}, nil
}

// Host is the host of that name.
func (s *Site) Host(name string) (Host, error) {
	i := slices.IndexFunc(s.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, fmt.Errorf("no host %q in cluster %s", name, s.Name)
	}
	return s.Hosts[i], nil
}

// With lists the hosts that run a daemon.
func (s *Site) With(daemon string) []Host {
	var with []Host
	for _, h := range s.Hosts {
		if slices.Contains(h.Daemons, daemon) {
			with = append(with, h)
		}
	}
	return with
}

// HostDir is the folder of a host's own files.
func (s *Site) HostDir(name string) string { return filepath.Join(s.Dir, "hosts", name) }

// Edits is the folder of what the namenodes have done, which they share.
func (s *Site) Edits() string { return filepath.Join(s.Dir, "edits") }

// Conf is a folder with core-site.xml and hdfs-site.xml.
func (s *Site) Conf() string { return filepath.Join(s.Dir, "conf") }

// ByFile is such a folder of clients that take blocks of their host by file.
func (s *Site) ByFile() string { return filepath.Join(s.Dir, "conf-by-file") }

// Control is the socket on which the keeper takes orders.
func (s *Site) Control() string { return filepath.Join(s.Dir, "control") }

// Keeper is the program that holds the cluster, and enters its hosts.
func (s *Site) Keeper() string { return filepath.Join(s.Dir, "keeper") }

// Bin is a folder of commands for developers on the hosts.
func (s *Site) Bin() string { return filepath.Join(s.Dir, "bin") }

// Pinned is a file; while it is there the cluster stays without users.
func (s *Site) Pinned() string { return filepath.Join(s.Dir, "pinned") }

// Broken is a file; while it is there a test may have broken the cluster.
func (s *Site) Broken() string { return filepath.Join(s.Dir, "broken") }

// Log is the log of the keeper and its helpers.
func (s *Site) Log() string { return filepath.Join(s.Dir, "keeper.log") }

func record(dir string) string { return filepath.Join(dir, "site.json") }

// Save writes the site down; a reader sees all of it or the one before.
func (s *Site) Save() error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	next := record(s.Dir) + ".next"
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return err
	}
	return os.Rename(next, record(s.Dir))
}

// Load reads what Save wrote.
func Load(dir string) (*Site, error) {
	text, err := os.ReadFile(record(dir))
	if err != nil {
		return nil, err
	}
	s := new(Site)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read %s: %w", record(dir), err)
	}
	return s, nil
}
