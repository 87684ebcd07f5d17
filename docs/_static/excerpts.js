// Pages that are opened as files cannot be fetched: the search takes their texts from texts.js.
if (location.protocol === "file:") {
  const script = document.createElement("script");
  script.src = "_static/texts.js";
  const loaded = new Promise((resolve, reject) => {
    script.onload = resolve;
    script.onerror = reject;
  });
  document.head.append(script);
  window.fetch = (address) => {
    const name = address.replace(/^\.\//, "").replace(/\.html([?#].*)?$/, "");
    return loaded.then(() => ({
      text: () => Promise.resolve(`<div role="main">${TEXTS[name] ?? ""}</div>`),
    }));
  };
}
