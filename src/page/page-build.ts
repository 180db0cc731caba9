/** Key of the session storage: the build for which this tab was loaded again. */
const RELOADED_FOR = "kubelet-ts-reloaded-for";

/** The script of this document: its name changes with the contents of the page. */
export const ownBuild = (): string =>
  document.querySelector<HTMLScriptElement>('script[type="module"]')?.src.split("/").at(-1) ?? "";

/** Loads the page of another build: once, for the case that two builds answer in turn. */
export function reloadFor(build: string): void {
  try {
    if (sessionStorage.getItem(RELOADED_FOR) === build) return;
    sessionStorage.setItem(RELOADED_FOR, build);
  } catch {
    // A browser that keeps nothing.
    return;
  }
  location.reload();
}
