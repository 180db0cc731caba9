/** Of the configuration file. Source: kubelet.config.k8s.io. */
export const CONFIG_KIND = "KubeletConfiguration";
export const CONFIG_API_VERSION = "kubelet.config.k8s.io/v1beta1";
