package server;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/** Starts one Neo4j server: the first argument is its folder, the second its Bolt port. */
public final class StartGraph {
    private StartGraph() {}

    public static void main(String[] given) throws Exception {
        SocketAddress address = new SocketAddress("127.0.0.1", Integer.parseInt(given[1]));
        DatabaseManagementServiceBuilder builder =
            new DatabaseManagementServiceBuilder(Path.of(given[0]).toAbsolutePath());
        builder.setConfig(BoltConnector.enabled, true);
        builder.setConfig(BoltConnector.listen_address, address);
        builder.setConfig(GraphDatabaseSettings.pagecache_memory, 64L << 20);
        DatabaseManagementService server = builder.build();
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
        new CountDownLatch(1).await();
    }
}
