const callbacks = new WeakMap<Element, (isVisible: boolean) => void>();
/** One for all elements. An element that is about to be scrolled into view counts. */
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) callbacks.get(target)?.(isIntersecting);
  },
  { rootMargin: "100px" },
);

/** Calls back when an element comes onto the screen and when it leaves it. @returns a function that ends it */
export function onVisible(element: Element, callback: (isVisible: boolean) => void): () => void {
  callbacks.set(element, callback);
  observer.observe(element);
  return () => observer.unobserve(element);
}
