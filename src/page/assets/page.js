// Keeps the page as it is on the server: replaces elements by id with what the server has made of them.
"use strict";
(() => {
  const body = document.body;
  const note = document.getElementById("note");
  const say = (text) => { if (note && note.textContent !== text) note.textContent = text; };

  // How long ago something was. The server sends only the time, which never changes.
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "always" });
  const age = (element) => {
    const at = Date.parse(element.dateTime);
    if (Number.isNaN(at)) return;
    const seconds = Math.round((at - Date.now()) / 1000);
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) || units[3];
    const text = words.format(Math.trunc(seconds / size), unit);
    if (!element.title) element.title = element.textContent;
    if (element.textContent !== text) element.textContent = text;
  };
  const ages = (within) => within.querySelectorAll("time:not(.clock)").forEach(age);
  ages(document);
  setInterval(() => { if (!document.hidden) ages(document); }, 20000);

  // What a person has opened stays open, and what they have typed is not lost.
  const isEdited = (element) => [...element.querySelectorAll("textarea, input:not([type=hidden])")].some((field) =>
    field === document.activeElement || (/^(checkbox|radio)$/.test(field.type)
      ? field.checked !== field.defaultChecked : field.value !== field.defaultValue));
  const made = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };
  const path = (element, top) => {
    const summary = element.querySelector("summary");
    const owner = element.closest("[id]");
    return (owner && owner !== top ? owner.id : "") + "\n" + (summary ? summary.textContent : "");
  };
  const replace = (id, html) => {
    const old = document.getElementById(id);
    if (!old) return;
    const fresh = made(html).firstElementChild;
    if (!fresh) return;
    const edited = [...old.querySelectorAll("[id]"), old].filter((element) => element.tagName === "LI" && isEdited(element));
    for (const element of edited) {
      const same = element === old ? fresh : fresh.querySelector("#" + CSS.escape(element.id));
      // A form that is still there can be sent: the server refuses it if something has changed.
      if (same && same.querySelector("form.answer") && element.querySelector("form.answer")) {
        if (same === fresh) return;
        same.replaceWith(element.cloneNode(false));
        fresh.querySelector("#" + CSS.escape(element.id)).replaceWith(element);
      }
    }
    const open = new Map([...old.querySelectorAll("details")].map((details) => [path(details, old), details.open]));
    const focused = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : "";
    old.replaceWith(fresh);
    for (const details of fresh.querySelectorAll("details")) {
      const was = open.get(path(details, fresh));
      if (was !== undefined) details.open = was;
    }
    if (focused) document.getElementById(focused)?.focus();
    ages(fresh.parentNode);
  };
  const append = (id, html) => {
    const list = document.getElementById(id);
    if (!list) return;
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 60;
    list.append(made(html));
    ages(list);
    if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight);
  };

  // A browser has six connections to a server: a hidden tab needs none.
  let stream = null;
  let shown = body.dataset.shown;
  let timer = 0;
  const close = () => { stream?.close(); stream = null; clearTimeout(timer); };
  const follow = () => {
    close();
    if (!body.dataset.live || document.hidden) return;
    const query = new URLSearchParams({ of: body.dataset.live, shown });
    stream = new EventSource("/live?" + query);
    stream.onopen = () => { body.dataset.connected = "yes"; say(""); };
    const on = (name, change) => stream.addEventListener(name, (event) => {
      const { id, html } = JSON.parse(event.data);
      change(id, html);
      if (event.lastEventId) shown = event.lastEventId;
    });
    on("replace", replace);
    on("append", append);
    stream.onerror = async () => {
      delete body.dataset.connected;
      if (stream.readyState !== EventSource.CLOSED) { say("not connected: trying again"); return; }
      close();
      const answer = await fetch(body.dataset.live, { redirect: "manual" }).catch(() => null);
      if (answer?.status === 401) { say("logged out: open the link that agent-cli serve has printed"); return; }
      if (answer?.status === 404) { say("this does not exist any more"); return; }
      say("not connected: trying again");
      timer = setTimeout(follow, 3000);
    };
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : follow()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", follow);

  // A form is sent without leaving the page. What comes of it arrives like everything else.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.method !== "post" || form.getAttribute("action") === "/login") return;
    event.preventDefault();
    const data = new URLSearchParams(new FormData(form, event.submitter));
    const buttons = [...form.querySelectorAll("button")];
    buttons.forEach((button) => { button.disabled = true; });
    say("sending");
    try {
      const answer = await fetch(form.action, { method: "POST", body: data });
      if (answer.ok) {
        const back = new URL(answer.url);
        say("done");
        form.reset();
        if (back.pathname !== location.pathname) location.assign(back.href);
        return;
      }
      const problem = new DOMParser().parseFromString(await answer.text(), "text/html");
      say((problem.getElementById("problem") || problem.body).textContent.trim());
    } catch {
      say("not sent: the server does not answer");
    } finally {
      buttons.forEach((button) => { button.disabled = false; });
    }
  });
})();
