/* Landmarks: what a run has been through, so that none passes for want of action. */
c_decl {
    static void landmark(const char *name)
    {
        static const char *seen[32];
        int i = 0;

        while (seen[i] != NULL && seen[i] != name)
            i++;
        if (seen[i] == NULL) {
            seen[i] = name;
            printf("reached: %s\n", name);
        }
    }
}
