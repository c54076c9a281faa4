"use strict";
(() => {
  const byId = (id) => document.getElementById(id);

  /* Charts are drawn when their place is about to be seen, and all in idle time, so
     that the page stands at once and prints whole. */
  const block = byId("chart-data");
  const specifications = block ? JSON.parse(block.textContent) : {};
  const options = {
    ast: true,
    actions: false,
    renderer: "svg",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };
  /* In a narrow window names are cut and the legend breaks into lines. */
  const fitted = (specification, width) => {
    if (width >= 420) return specification;
    const { config } = specification;
    const axis = { ...config.axis, labelLimit: 165, tickCount: 4 };
    const legend = { ...config.legend, columns: 2 };
    return { ...specification, config: { ...config, axis, legend } };
  };
  const drawn = new Set();
  const draw = (place) => {
    if (drawn.has(place) || !place.offsetWidth) return;
    drawn.add(place);
    window
      .vegaEmbed(
        place,
        fitted(specifications[place.dataset.chart], place.offsetWidth),
        options,
      )
      .catch((error) => {
        place.textContent = `This chart could not be drawn (${error.message}).`;
      });
  };
  const places = window.vegaEmbed ? [...document.querySelectorAll("[data-chart]")] : [];
  const seen = new IntersectionObserver(
    (entries) => entries.forEach((entry) => entry.isIntersecting && draw(entry.target)),
    { rootMargin: "400px" },
  );
  places.forEach((place) => seen.observe(place));
  const whenIdle = window.requestIdleCallback || ((task) => setTimeout(task, 50));
  const drawNext = () => {
    const next = places.find((place) => !drawn.has(place) && place.offsetWidth);
    if (!next) return;
    draw(next);
    whenIdle(drawNext);
  };
  whenIdle(drawNext);

  /* A link to a gate unfolds it. */
  const unfold = () => {
    const target = location.hash ? byId(decodeURIComponent(location.hash.slice(1))) : null;
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  window.addEventListener("hashchange", unfold);
  unfold();
  document.querySelectorAll(".strip a").forEach((link) =>
    link.addEventListener("click", () => {
      const gate = byId(link.hash.slice(1));
      gate.open = true;
      gate.querySelector("summary").focus({ preventScroll: true });
    }),
  );

  /* Flips: filters, and arrow keys from one to the next. */
  const form = document.querySelector(".filters");
  const flips = [...document.querySelectorAll(".flip")];
  const more = document.querySelector(".more");
  if (form) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    const page = 25;
    let most = page;
    const apply = () => {
      const { direction, question, kind, words } = form.elements;
      const wanted = words.value.trim().toLowerCase();
      let found = 0;
      for (const flip of flips) {
        const fits =
          (!direction.value || flip.dataset.direction === direction.value) &&
          (!question.value || flip.dataset.question === question.value) &&
          (!kind.value || flip.dataset.kind === kind.value) &&
          (!wanted || flip.textContent.toLowerCase().includes(wanted));
        if (fits) found += 1;
        flip.hidden = !fits || found > most;
      }
      const shown = Math.min(found, most);
      form.querySelector("output").textContent = `${shown} of ${found}`;
      more.hidden = found <= most;
    };
    form.addEventListener("input", () => {
      most = page;
      apply();
    });
    more.addEventListener("click", () => {
      const first = most;
      most += page;
      apply();
      flips.filter((flip) => !flip.hidden)[first]?.querySelector("summary").focus();
    });
    apply();
  }
  const list = document.querySelector(".flips");
  if (list) {
    list.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || event.target.tagName !== "SUMMARY") return;
      const visible = flips.filter((flip) => !flip.hidden);
      const next = visible[visible.indexOf(event.target.parentElement) + step];
      if (!next) return;
      event.preventDefault();
      next.querySelector("summary").focus();
    });
  }

  /* The contents show where the reader is. */
  const links = [...document.querySelectorAll(".contents a")];
  const sections = links.map((link) => byId(link.hash.slice(1)));
  const mark = () => {
    const line = window.innerHeight / 3;
    let here = 0;
    sections.forEach((section, index) => {
      if (section.getBoundingClientRect().top <= line) here = index;
    });
    links.forEach((link, index) => {
      if (index === here) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    });
  };
  document.addEventListener("scroll", mark, { passive: true });
  mark();

  /* Print with every gate unfolded, and fold again. */
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll(".gate:not([open])")];
    folded.forEach((gate) => (gate.open = true));
  });
  window.addEventListener("afterprint", () => {
    folded.forEach((gate) => (gate.open = false));
  });
})();
