"""The MCP door: tools, resources and a prompt for agents that speak the Model Context Protocol."""
