// Before the first paint: the theme that was chosen here, if any. Without a choice the style sheet follows the system.
"use strict";
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* storage may be forbidden; then the system decides */ }
