import type { Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const callbacks = new WeakMap<Element, (isVisible: boolean) => void>();
/** One for all elements. What is about to be scrolled into view counts. */
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) callbacks.get(target)?.(isIntersecting);
  },
  { rootMargin: "100px" },
);

/** Whether an element is on the screen; false until that is known. */
export function useVisible<T extends Element>(): { place: Ref<T>; isVisible: boolean } {
  const place = useRef<T>(null);
  const [isVisible, setVisible] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    callbacks.set(element, setVisible);
    observer.observe(element);
    return () => observer.unobserve(element);
  }, []);
  return { place, isVisible };
}
