package org.opensearch.transport.grpc.spi;

/** An interface of a module that is not published: k-NN names it, and nothing calls it here. */
public interface QueryBuilderProtoConverterRegistry {}
