// Starts the language server for documents of HLO and MLIR.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("mlirhlo").get("server");
  const server = { command, args: [] };
  client = new LanguageClient("mlirhlo", "HLO", server, {
    documentSelector: [{ language: "hlo" }, { language: "mlir" }],
  });
  return client.start();
};

exports.deactivate = () => client && client.stop();
