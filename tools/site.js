document.addEventListener("DOMContentLoaded", () => renderMathInElement(document.body, {delimiters: [
  {left: "\\[", right: "\\]", display: true}, {left: "\\(", right: "\\)", display: false}]}));

// A short name stays in one line, and so does an option in a longer one, also at its hyphens.
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll(":not(pre) > code"))
    if (code.textContent.length <= 28) code.classList.add("short");
    else code.innerHTML = code.innerHTML.replace(/--[a-z][a-z-]*/g, '<span style="white-space:nowrap">$&</span>');
});

// The search of the theme needs a server. Without one, this finds the sections that have all words of a question; those
// with the words in their titles come first.
const root = new URL("..", document.currentScript.src);

function found_sections(sections, question) {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  const in_title = section => words.filter(word => section.title.toLowerCase().includes(word)).length;
  return !words.length ? [] : sections
    .filter(({title, text}) => words.every(word => (title + " " + text).toLowerCase().includes(word)))
    .sort((a, b) => in_title(b) - in_title(a)).slice(0, 30);
}

function search_without_server() {
  const box = document.createElement("div");
  box.className = "search-without-server";
  box.innerHTML = '<input type="search" placeholder="Search" aria-label="Search"><ol hidden></ol>';
  const [input, list] = box.children;
  const show = () => {
    const sections = found_sections(window.search_sections || [], input.value);
    list.hidden = !input.value.trim();
    list.replaceChildren(...sections.map(section => {
      const link = document.createElement("a");
      link.href = new URL(section.location, root);
      link.textContent = section.title;
      const item = document.createElement("li");
      item.append(link, " " + section.text.slice(0, 120));
      return item;
    }));
    if (!sections.length) list.textContent = "No section has all these words.";
  };
  const index = document.createElement("script");
  index.src = new URL("search/sections.js", root);
  index.onload = show;
  input.addEventListener("input", show);
  input.value = new URLSearchParams(location.search).get("find") || "";
  for (const part of document.querySelectorAll('[data-md-component="search"], .md-header label[for="__search"]'))
    part.style.display = "none";
  document.querySelector(".md-header__inner").append(box);
  document.head.append(index);
}

if (location.protocol === "file:") document.addEventListener("DOMContentLoaded", search_without_server);
