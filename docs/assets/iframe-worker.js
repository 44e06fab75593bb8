// From a disk a browser starts no worker, and the search is one: an invisible frame does its work instead.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const script = (code, source = "") => `<script${source}>${code}<\/script>`
      const page = frame.contentDocument
      page.open()
      page.write(script("postMessage = (data) => parent.dispatchEvent(new MessageEvent('message', { data, source: window }))"))
      page.write(script("", ` src="${url}"`))
      page.close()
      this.frame = frame.contentWindow
      this.ready = new Promise((done) => frame.addEventListener("load", done, { once: true }))
      window.addEventListener("message", (event) => {
        if (event.source !== this.frame) return
        const heard = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(heard)
        if (this.onmessage) this.onmessage(heard)
      })
    }
    postMessage(data) {
      this.ready.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.frameElement.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
