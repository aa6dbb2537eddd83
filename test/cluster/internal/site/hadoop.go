package site

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rankfs/test/hadoop"
)

// Nameservice is the name by which clients mean whichever namenode is active.
const Nameservice = "rankfs"

// Ports of the daemons.
const (
	NameRPC  = 8020
	NameHTTP = 9870
	DataHTTP = 9864
	DataRPC  = 9867
)

// Heartbeat is how many seconds a datanode lets pass before it tells each namenode again
// that it is there. That, and the answers, are most of what idle daemons do.
const Heartbeat = 3

// Classes are the programs behind the daemons.
var Classes = map[string]string{
	NameNode: "org.apache.hadoop.hdfs.server.namenode.NameNode",
	DataNode: "org.apache.hadoop.hdfs.server.datanode.DataNode",
}

// Daemon is the command line of a daemon on a host. Datanodes pass files of
// their blocks to programs on their host, unless they have not the native library,
// with which they would not start if they were to.
func (s *Site) Daemon(host, daemon string, native bool) []string {
	if daemon != DataNode || !native {
		return s.Java(host, hadoop.DaemonOptions, Classes[daemon])
	}
	options := append([]string{s.Home.Native()}, hadoop.DaemonOptions...)
	return s.Java(host, options, Classes[daemon], "-D", byFile+"=true")
}

// byFile is the setting of a datanode that passes the files of blocks to local
// clients, and of a client that takes them.
const byFile = "dfs.client.read.shortcircuit"

// core are the settings that every client needs.
func (s *Site) core() map[string]string {
	return map[string]string{
		"fs.defaultFS":   "hdfs://" + Nameservice,
		"hadoop.tmp.dir": "${host.dir}/tmp",
		// A namenode that is gone is given up in seconds, not minutes.
		"ipc.client.connect.timeout":                 "2000",
		"ipc.client.connect.max.retries":             "2",
		"ipc.client.connect.max.retries.on.timeouts": "1",
	}
}

// hdfs are the settings of the daemons and of HDFS clients. ${host.dir} is
// filled in by Java from a property of the process: one file serves all hosts.
func (s *Site) hdfs() map[string]string {
	conf := map[string]string{
		"dfs.namenode.name.dir":         "file://${host.dir}/name",
		"dfs.datanode.data.dir":         "file://${host.dir}/data",
		"dfs.namenode.shared.edits.dir": "file://" + s.Edits(),
		"dfs.replication":               "2",
		"dfs.webhdfs.enabled":           "true",

		// In a host's own /run.
		"dfs.domain.socket.path": "/run/datanode._PORT",

		"dfs.nameservices": Nameservice,
		"dfs.client.failover.proxy.provider." + Nameservice: "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
		"dfs.ha.fencing.methods":                            "shell(/bin/true)", // a test that fails over has seen to the other one
		"dfs.ha.tail-edits.period":                          "1",

		// Small files of many blocks.
		"dfs.namenode.fs-limits.min-block-size": "1024",
		// Placement depends on the writer's host and on nothing else.
		"dfs.namenode.redundancy.considerLoad": "false",
		// A dead datanode is known to be dead after 2*recheck + 10*heartbeat: 32 s.
		"dfs.heartbeat.interval":                                                       fmt.Sprint(Heartbeat),
		"dfs.namenode.heartbeat.recheck-interval":                                      "1000",
		"dfs.namenode.redundancy.interval.seconds":                                     "1",
		"dfs.namenode.safemode.extension":                                              "0",
		"dfs.namenode.edits.noeditlogchannelflush":                                     "true", // a test host loses no power
		"dfs.namenode.block.deletion.unlock.interval.ms":                               "500",  // a thread looks for some to delete as often
		"dfs.namenode.handler.count":                                                   "8",
		"dfs.datanode.handler.count":                                                   "3",
		"dfs.namenode.service.handler.count":                                           "3",
		"dfs.datanode.du.reserved":                                                     "0",
		"dfs.datanode.available-space-volume-choosing-policy.balanced-space-threshold": "10737418240",
	}
	var ids []string
	for i, h := range s.With(NameNode) {
		id := fmt.Sprintf("nn%d", i+1)
		ids = append(ids, id)
		conf["dfs.namenode.rpc-address."+Nameservice+"."+id] = fmt.Sprintf("%s:%d", h.Name, NameRPC)
		conf["dfs.namenode.http-address."+Nameservice+"."+id] = fmt.Sprintf("%s:%d", h.Name, NameHTTP)
	}
	conf["dfs.ha.namenodes."+Nameservice] = strings.Join(ids, ",")
	if s.racks() != "" {
		conf["net.topology.node.switch.mapping.impl"] = "org.apache.hadoop.net.TableMapping"
		conf["net.topology.table.file.name"] = s.topology()
	}
	return conf
}

func (s *Site) topology() string { return filepath.Join(s.Conf(), "topology") }

// racks is the table of them, empty if there are none.
func (s *Site) racks() string {
	var b strings.Builder
	for _, h := range s.Hosts {
		if h.Rack != "" {
			fmt.Fprintf(&b, "%s %s\n", h.IP, h.Rack)
		}
	}
	return b.String()
}

// WriteConf writes the folders that Hadoop's programs read.
func (s *Site) WriteConf() error {
	if err := s.writeConf(s.Conf(), s.hdfs()); err != nil {
		return err
	}
	near := s.hdfs()
	near[byFile] = "true"
	if err := s.writeConf(s.ByFile(), near); err != nil {
		return err
	}
	return os.WriteFile(s.topology(), []byte(s.racks()), 0o644)
}

func (s *Site) writeConf(dir string, hdfs map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeXML(filepath.Join(dir, "core-site.xml"), s.core()); err != nil {
		return err
	}
	return writeXML(filepath.Join(dir, "hdfs-site.xml"), hdfs)
}

type property struct {
	Name  string `xml:"name"`
	Value string `xml:"value"`
}

func writeXML(file string, conf map[string]string) error {
	var c struct {
		XMLName    xml.Name   `xml:"configuration"`
		Properties []property `xml:"property"`
	}
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		c.Properties = append(c.Properties, property{name, conf[name]})
	}
	text, err := xml.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Java is the command line of a Java program on a host.
func (s *Site) Java(host string, options []string, class string, args ...string) []string {
	options = append([]string{"-Dhost.dir=" + s.HostDir(host)}, options...)
	return s.Home.Line(s.Conf(), options, class, args...)
}
