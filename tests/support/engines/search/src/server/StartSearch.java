package server;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

/** Starts one OpenSearch node: the first argument is its folder, the second its HTTP port. */
public final class StartSearch extends Node {
    private static final List<String> PLUGINS = List.of(
        "org.opensearch.transport.Netty4ModulePlugin",
        "org.opensearch.analysis.common.CommonAnalysisModulePlugin",
        "org.opensearch.painless.PainlessModulePlugin",
        "org.opensearch.index.mapper.MapperExtrasModulePlugin",
        "org.opensearch.index.reindex.ReindexModulePlugin",
        "org.opensearch.ingest.common.IngestCommonModulePlugin",
        "org.opensearch.knn.plugin.KNNPlugin");

    private StartSearch(Settings settings) {
        super(
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "search"),
            PLUGINS.stream().map(StartSearch::describe).toList(),
            false);
    }

    private static PluginInfo describe(String name) {
        String java = System.getProperty("java.specification.version");
        return new PluginInfo(name, name, "0", Version.CURRENT, java, name, null, List.of(), false);
    }

    private static Settings configure(Path folder, String port) {
        Settings.Builder settings = Settings.builder();
        settings.put("path.home", folder.toString());
        settings.put("cluster.name", "recollect-tests");
        settings.put("discovery.type", "single-node");
        settings.put("network.host", "127.0.0.1");
        settings.put("http.port", port);
        // Any port: nobody else joins this node.
        settings.put("transport.port", "0");
        Stream.of("http.type", "transport.type").forEach(name -> settings.put(name, "netty4"));
        // Small machines have few maps and little room on their disks.
        settings.put("node.store.allow_mmap", false);
        settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
        return settings.build();
    }

    public static void main(String[] given) throws Exception {
        Path folder = Path.of(given[0]).toAbsolutePath();
        Files.createDirectories(folder.resolve("config"));
        StartSearch node = new StartSearch(configure(folder, given[1]));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception problem) {
                problem.printStackTrace();
            }
        }));
        node.start();
        new CountDownLatch(1).await();
    }
}
