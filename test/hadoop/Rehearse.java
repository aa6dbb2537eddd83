import java.io.File;
import java.io.InputStream;
import java.net.ServerSocket;
import java.net.URL;
import java.nio.file.Files;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.hdfs.tools.DFSHAAdmin;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Has a namenode, a datanode and tools in one process do what those of a cluster
 * do until it is up, and a little after, so that a virtual machine that is told to
 * archives the classes of all of them. Its argument is a folder of its own.
 */
public class Rehearse {
	public static void main(String[] args) {
		try {
			rehearse(new File(args[0]));
			System.exit(0);
		} catch (Throwable t) {
			t.printStackTrace();
			System.exit(1); // daemons have threads that stay
		}
	}

	private static void rehearse(File dir) throws Exception {
		int rpc = freePort(), http = freePort();
		Configuration conf = new HdfsConfiguration();
		conf.set("hadoop.tmp.dir", dir + "/tmp");
		conf.set("fs.defaultFS", "hdfs://rehearsal");
		conf.set("dfs.nameservices", "rehearsal");
		conf.set("dfs.ha.namenodes.rehearsal", "nn1,nn2");
		conf.set("dfs.ha.namenode.id", "nn1");
		conf.set("ipc.client.connect.max.retries", "1"); // there is no nn2
		conf.set("dfs.ha.fencing.methods", "shell(/bin/true)");
		conf.set("dfs.client.failover.proxy.provider.rehearsal",
			"org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider");
		conf.set("dfs.namenode.rpc-address.rehearsal.nn1", "localhost:" + rpc);
		conf.set("dfs.namenode.rpc-address.rehearsal.nn2", "localhost:" + freePort());
		conf.set("dfs.namenode.http-address.rehearsal.nn1", "localhost:" + http);
		conf.set("dfs.namenode.http-address.rehearsal.nn2", "localhost:" + freePort());
		conf.set("dfs.namenode.shared.edits.dir", "file://" + dir + "/edits");
		conf.set("dfs.namenode.safemode.extension", "0");
		conf.set("dfs.datanode.address", "localhost:0");
		conf.set("dfs.datanode.ipc.address", "localhost:0");
		conf.set("dfs.datanode.http.address", "localhost:0");
		conf.set("dfs.replication", "1");
		conf.set("dfs.heartbeat.interval", "1");

		DefaultMetricsSystem.setMiniClusterMode(true); // two daemons in one process
		NameNode.format(conf);
		NameNode name = NameNode.createNameNode(new String[0], conf);
		DataNode data = DataNode.createDataNode(new String[0], conf);
		run(new DFSHAAdmin(), conf, "-transitionToActive", "--forceactive", "nn1");
		while (!get(http, "/jmx?qry=Hadoop:service=NameNode,name=*").contains("\"NumLiveDataNodes\" : 1,"))
			Thread.sleep(1000);
		get(data.getInfoPort(), "/jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo");
		File file = new File(dir, "file");
		Files.write(file.toPath(), new byte[100_000]);
		run(new FsShell(), conf, "-mkdir", "-p", "/dir");
		run(new FsShell(), conf, "-put", file.getPath(), "/dir/file");
		run(new FsShell(), conf, "-get", "/dir/file", file.getPath() + "2");
		run(new FsShell(), conf, "-ls", "/dir");
		get(http, "/webhdfs/v1/dir/file?op=GET_BLOCK_LOCATIONS&user.name=root");
		get(http, "/webhdfs/v1/dir/file?op=OPEN&user.name=root");
		run(new DFSAdmin(), conf, "-safemode", "leave");
		run(new DFSAdmin(), conf, "-triggerBlockReport", "localhost:" + data.getIpcPort());
		run(new FsShell(), conf, "-rm", "-r", "-skipTrash", "/dir");
	}

	private static int freePort() throws Exception {
		try (ServerSocket s = new ServerSocket(0)) {
			return s.getLocalPort();
		}
	}

	private static void run(Tool tool, Configuration conf, String... args) throws Exception {
		int status = ToolRunner.run(new HdfsConfiguration(conf), tool, args);
		if (status != 0)
			throw new Exception(tool.getClass() + " ended with " + status);
	}

	private static String get(int port, String path) throws Exception {
		try (InputStream in = new URL("http://localhost:" + port + path).openStream()) {
			return new String(in.readAllBytes(), "UTF-8");
		}
	}
}
