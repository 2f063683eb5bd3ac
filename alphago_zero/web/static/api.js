// How the page speaks to its server: JSON over HTTP, and a WebSocket that comes back by itself.

import { text } from "./strings.js";

export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error(text.offline);
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? text.refused(response.status));
  return answer;
}

export const post = (path, body) => ask(path, { method: "POST", body });

/** What a person is told about the state of a connection. */
export const stateWords = (state) => ({ open: "", idle: text.idle, hasty: text.hasty, closed: text.reconnecting })[state];

/** A conversation: `onOpen` says what the server must know at the start, `handlers` has a function a message type. */
export class Connection {
  #socket = null;
  #wait = 500;
  #timer = null;
  #waiting = null;

  constructor(path, { onOpen, onState, handlers }) {
    Object.assign(this, { path, onOpen, onState, handlers });
    this.wanted = false;
  }

  get isOpen() { return this.#socket?.readyState === WebSocket.OPEN; }

  open() {
    this.wanted = true;
    if (this.#socket && this.#socket.readyState <= WebSocket.OPEN) return;
    clearTimeout(this.#timer);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = this.#socket = new WebSocket(`${scheme}//${location.host}${this.path}`);
    socket.addEventListener("open", () => {
      this.#wait = 500;
      this.onState("open");
      this.onOpen();
      if (this.#waiting) this.send(this.#waiting);
      this.#waiting = null;
    });
    socket.addEventListener("message", (event) => {
      const message = JSON.parse(event.data);
      this.handlers[message.type]?.(message);
    });
    socket.addEventListener("close", (event) => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      if (!this.wanted) return;
      if (event.reason === "idle" || event.reason === "too many messages") {
        this.onState(event.reason === "idle" ? "idle" : "hasty"); // the next thing the person does opens it again
        return;
      }
      this.onState("closed");
      this.#timer = setTimeout(() => this.open(), this.#wait);
      this.#wait = Math.min(this.#wait * 2, 10_000);
    });
  }

  close() {
    this.wanted = false;
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#socket = null;
  }

  /** Send now; or open again first, tell the server all it must know at the start, and then send. */
  send(message) {
    if (this.isOpen) { this.#socket.send(JSON.stringify(message)); return; }
    this.#waiting = message;
    this.open();
  }
}
