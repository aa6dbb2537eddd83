public class Read { public static void main(String[] a) {} }
