import java.util.Arrays;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** Runs a tool of Hadoop's and says how long that took, without the start of the virtual machine. */
public class Timed {
	public static void main(String[] args) throws Exception {
		Tool tool = Class.forName(args[0]).asSubclass(Tool.class).getDeclaredConstructor().newInstance();
		long began = System.nanoTime();
		int status = ToolRunner.run(new Configuration(), tool, Arrays.copyOfRange(args, 1, args.length));
		System.out.printf("%s: seconds=%.3f%n", args[0], (System.nanoTime() - began) / 1e9);
		System.exit(status);
	}
}
