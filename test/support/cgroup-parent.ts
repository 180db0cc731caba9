/**
 * Path below the cgroup file systems of what Docker was given as CgroupParent: a path, or under the systemd driver the
 * name of a slice, which spells out the slices above it.
 */
export function toParentPath(cgroupParent: string): string {
  if (!cgroupParent.endsWith(".slice")) return cgroupParent;
  const parts = cgroupParent.slice(0, -".slice".length).split("-");
  return `/${parts.map((_, index) => `${parts.slice(0, index + 1).join("-")}.slice`).join("/")}`;
}
